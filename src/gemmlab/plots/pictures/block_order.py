"""Picture of the order in which blocks compute the tiles of C, and of the blocks that run at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from gemmlab.observe.matrix_trace import KernelTrace
from gemmlab.plots.chart import BLACK, BLUE, GREEN, ORANGE, PURPLE, VegaChart
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.sheet import BESIDE, Sheet

COLOURS = (BLUE, ORANGE, GREEN, PURPLE)
INKS = ("white", BLACK, "white", BLACK)
ENDS = "first and last block"
_PIXELS = 460.0
_NUMBERED = 30.0
"""Fewest pixels of a tile that shows its number."""


@dataclass(frozen=True, slots=True)
class Order:
    """The tiles of C in the order in which their blocks start."""

    tiles: tuple[tuple[int, int], ...]
    """Row and column of each tile, counted in tiles."""
    resident: int
    """Number of blocks that run at once on `gpu`."""
    gpu: str

    def waves(self) -> list[tuple[tuple[int, int], ...]]:
        """Return the tiles of each wave: those of the blocks that run at once if all blocks take equally long."""
        return [self.tiles[at : at + self.resident] for at in range(0, len(self.tiles), self.resident)]


def order_of(kernel_trace: KernelTrace) -> Order | None:
    """Return the order of the tiles, each identified by the lowest address that its block writes.

    `None` if there are fewer than two blocks, or if a block's lowest address is not in the result.
    """
    corners = [kernel_trace.element(write.low) for write in kernel_trace.trace.writes]
    places = [(corner.row, corner.col) for corner in corners if corner is not None]
    if len(places) < 2 or len(places) != len(corners):
        return None
    rows, cols = (sorted({place[axis] for place in places}) for axis in (0, 1))
    tiles = tuple((rows.index(row), cols.index(col)) for row, col in places)
    return Order(tiles, kernel_trace.resident, kernel_trace.gpu)


def _of(subject: Subject) -> Order | None:
    return order_of(subject.order) if subject.order is not None else None


def _draw(subject: Subject) -> VegaChart:
    order = _of(subject)
    assert order is not None  # noqa: S101 - it applies
    rows, cols = (1 + max(tile[axis] for tile in order.tiles) for axis in (0, 1))
    square = _PIXELS / max(rows, cols)
    sheet = Sheet(square=square)
    waves = order.waves()
    names = {f"wave {number + 1}": COLOURS[number % len(COLOURS)] for number in range(len(waves))}
    for name, wave in zip(names, waves, strict=True):
        for row, col, wide in _runs(wave):
            sheet.box(col, row, name, wide=wide)
    if square >= _NUMBERED:
        for number, (row, col) in enumerate(order.tiles):
            ink = INKS[number // order.resident % len(INKS)]
            sheet.word(col + 0.5, row + 0.5, str(number), size=9, colour=ink)
    else:
        corners = turns(order.tiles)
        for (row, col), (row2, col2) in pairwise(corners):
            sheet.stroke(col + 0.5, row + 0.5, col2 + 0.5, row2 + 0.5, "white")
        for row, col in (corners[0], corners[-1]):
            sheet.box(col + 0.2, row + 0.2, ENDS, wide=0.6, high=0.6)
    sheet.frame(0, 0, cols, rows, "#888888", width=0.8)
    down, across = (len({tile[axis] for tile in waves[0]}) for axis in (0, 1))
    text = f"the first {len(waves[0])} read {down} rows of tiles of A and {across} columns of tiles of B"
    title = f"{order.gpu}: {min(order.resident, len(order.tiles))} of {len(order.tiles)} blocks run at once"
    sheet.word(0, -28 / square, title, size=12, align="left")
    sheet.word(0, -11 / square, text, size=11, align="left", colour=BESIDE)
    return sheet.chart({**names, ENDS: BLACK})


def turns(tiles: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the corners of the path through the tiles: its ends, and the tiles at which its step changes."""
    corners = list(tiles[:1])
    for before, here, after in zip(tiles, tiles[1:], tiles[2:], strict=False):
        if (here[0] - before[0], here[1] - before[1]) != (after[0] - here[0], after[1] - here[1]):
            corners.append(here)
    return [*corners, tiles[-1]]


def _runs(wave: tuple[tuple[int, int], ...]) -> list[tuple[int, int, int]]:
    """Return the horizontal runs of adjacent tiles in a wave as (row, first column, number of tiles)."""
    found: list[tuple[int, int, int]] = []
    for row, col in sorted(set(wave)):
        if found and found[-1][0] == row and found[-1][1] + found[-1][2] == col:
            found[-1] = (row, found[-1][1], found[-1][2] + 1)
        else:
            found.append((row, col, 1))
    return found


DRAWING = Drawing(
    name="block_order",
    place=16,
    title="The order in which blocks take the tiles of C",
    caption="Each tile is at the lowest address that its block wrote. Tiles are joined in the order of the blocks' "
    "numbers and coloured by the waves in which the blocks run if all take equally long. A wave reads as many rows of "
    "tiles of A and columns of tiles of B as its tiles cover.",
    applies=lambda subject: subject.on_gpu and _of(subject) is not None,
    draw=_draw,
)
