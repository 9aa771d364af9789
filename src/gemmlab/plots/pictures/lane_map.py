"""Picture of the map from thread numbers to elements of C, bit by bit: the row and column bits that each bit flips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gemmlab.observe.matrix_trace import KernelTrace
from gemmlab.plots.chart import BLUE, GREEN, ORANGE, VegaChart
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.sheet import BESIDE, Sheet

ROW, COL, OWN = "row of C", "column of C", "results of one thread"
COLOURS = {COL: BLUE, ROW: ORANGE, OWN: GREEN}
LANE_BITS = 5
_SQUARE = 24.0


@dataclass(frozen=True, slots=True)
class LaneMap:
    """The map from a thread's number to the corner (lowest row and column) of its results in C, as bit masks."""

    moves: tuple[tuple[int, int], ...]
    """For each bit of the thread's number, lowest first, the masks of the row and column bits that it flips."""
    own: tuple[int, int]
    """Masks of the row and column bits in which the results of the first thread differ."""


def lane_map(kernel_trace: KernelTrace) -> LaneMap | None:
    """Return the lane map of the first block's stores; `None` if the map is not linear in the bits (`flips_of`)."""
    corners, own = _corners(kernel_trace)
    moves = flips_of(corners)
    return None if moves is None else LaneMap(moves, own)


def flips_of(corners: Mapping[int, tuple[int, int]]) -> tuple[tuple[int, int], ...] | None:
    """Return, for each bit of a thread's number, the masks of the row and column bits that it flips.

    `corners` maps thread numbers to (row, column). Returns `None` if the map is not linear over GF(2), that is, if a
    bit's effect depends on the other bits, or if the numbers are not 0 to a power of two less one.
    """
    count = len(corners)
    if count < 2 or count & (count - 1) or set(corners) != set(range(count)):
        return None
    base = corners[0]
    bits = range(count.bit_length() - 1)
    moves = tuple((corners[1 << bit][0] ^ base[0], corners[1 << bit][1] ^ base[1]) for bit in bits)
    for thread, corner in corners.items():
        row, col = base
        for bit in bits:
            if thread >> bit & 1:
                row, col = row ^ moves[bit][0], col ^ moves[bit][1]
        if (row, col) != corner:
            return None
    return moves


def _corners(kernel_trace: KernelTrace) -> tuple[Mapping[int, tuple[int, int]], tuple[int, int]]:
    """Return the lowest row and column by thread, and the masks of the bits that vary in the first thread's results.

    The map is empty unless the kernel writes exactly one operand.
    """
    if kernel_trace.result is None:
        return {}, (0, 0)
    moved = kernel_trace.moves(kernel_trace.result.operand.name, (a for a in kernel_trace.trace.accesses if a.store))
    corners = {}
    own = (0, 0)
    for thread in np.unique(moved.thread).tolist():
        mine = moved.where(moved.thread == thread)
        rows, cols = np.unique(mine.row), np.unique(mine.col)
        corners[thread] = (int(rows[0]), int(cols[0]))
        if len(corners) == 1:
            differ = (np.bitwise_or.reduce(values ^ values[0]) for values in (rows, cols))
            own = (int(next(differ)), int(next(differ)))
    return corners, own


def _draw(subject: Subject) -> VegaChart:
    found = lane_map(subject.trace)
    sheet = Sheet(square=_SQUARE)
    if found is None:
        sheet.word(0, 0.5, "not linear: bits of the thread's number do not act one by one", size=12, align="left")
        sheet.word(18, 0.5, " ")
        return sheet.chart(COLOURS)
    lines = [(COL, 1, bit) for bit in _bits(found, 1)] + [(ROW, 0, bit) for bit in _bits(found, 0)]
    columns = len(found.moves)
    for y, (kind, axis, bit) in enumerate(lines):
        sheet.word(-0.3, y + 0.5, f"{'column' if axis else 'row'} {1 << bit}", size=10, align="right", colour=BESIDE)
        for x, flips in enumerate(found.moves):
            if flips[axis] >> bit & 1:
                sheet.box(x, y, kind)
        if found.own[axis] >> bit & 1:
            sheet.box(columns + 0.5, y, OWN)
    _grid(sheet, columns, len(lines))
    for x in range(columns):
        sheet.word(x + 0.5, -0.4, f"{1 << x}", size=10, colour=BESIDE)
    sheet.word(columns + 1, -0.4, "own", size=10, colour=BESIDE)
    sheet.word(0, -1.4, "lane", size=12, align="left")
    if columns > LANE_BITS:
        sheet.word(LANE_BITS + 0.1, -1.4, "warp", size=12, align="left")
        sheet.stroke(LANE_BITS, -1.8, LANE_BITS, len(lines), "#444444", width=1.5)
    sheet.word(-3.5, 0, " ")
    return sheet.chart(COLOURS)


def _bits(found: LaneMap, axis: int) -> list[int]:
    """Return the numbers of the bits of the row (axis 0) or column (axis 1) that differ between any results."""
    every = found.own[axis]
    for flips in found.moves:
        every |= flips[axis]
    return [bit for bit in range(every.bit_length()) if every >> bit & 1]


def _grid(sheet: Sheet, columns: int, lines: int) -> None:
    for x in range(columns + 1):
        sheet.stroke(x, 0, x, lines, "#cccccc", width=0.6)
    for y in range(lines + 1):
        sheet.stroke(0, y, columns, y, "#cccccc", width=0.6)


DRAWING = Drawing(
    name="lane_map",
    place=14,
    title="A thread's place on C, bit by bit",
    caption="Each column is a bit of the thread's number (1, 2, 4, ... within the warp, then between warps). Each row "
    "is a bit of the column or row of C at which the thread's results begin. A filled square means that the thread's "
    "bit flips that bit of the place.",
    applies=lambda subject: subject.on_gpu and subject.kernel.op == "gemm" and len(_corners(subject.trace)[0]) > 1,
    draw=_draw,
)
