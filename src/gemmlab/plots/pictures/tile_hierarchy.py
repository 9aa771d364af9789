"""Picture of the result's hierarchy of tiles: of blocks, of the warps of a block, of the lanes of a warp."""

from __future__ import annotations

from collections.abc import Mapping

from gemmlab.observe.matrix_trace import KernelTrace
from gemmlab.plots.chart import BLUE, ORANGE, VegaChart
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.owners import Area, Piece, crowded, pieces
from gemmlab.plots.pictures.plot import Patch, finished, panel
from gemmlab.plots.pictures.sheet import Sheet

Cell = tuple[int, int]
_SIZE, _STEP = (180.0, 180.0), 226.0
_PALE, _PALER = "#e3e6ea", "#f1f3f5"
_MOST_TILES = 16
"""Most tiles of C that are drawn in each direction."""


def threads_of(kernel_trace: KernelTrace) -> dict[Cell, tuple[int, int]]:
    """Return, for each element of the result that the first block stores, the warp and lane that store it last.

    Empty unless exactly one operand is written.
    """
    if kernel_trace.result is None:
        return {}
    moved = kernel_trace.moves(kernel_trace.result.operand.name, (a for a in kernel_trace.trace.accesses if a.store))
    columns = (moved.row, moved.col, moved.warp, moved.lane)
    return {(row, col): (warp, lane) for row, col, warp, lane in zip(*(c.tolist() for c in columns), strict=True)}


def blocks_of(kernel_trace: KernelTrace) -> list[Area]:
    """Return the tiles of the result that the blocks write, in the order of the blocks' numbers.

    A tile begins at the lowest address that its block writes. All are as large as the first block's, cut off at the
    edges of the result. Empty unless exactly one operand is written.
    """
    if kernel_trace.result is None:
        return []
    found, tile = [], Area.around(threads_of(kernel_trace))
    for write in kernel_trace.trace.writes:
        corner = kernel_trace.element(write.low)
        if corner is not None:
            rows = min(tile.rows, kernel_trace.result.operand.rows - corner.row)
            found.append(
                Area(corner.row, corner.col, rows, min(tile.cols, kernel_trace.result.operand.cols - corner.col))
            )
    return found


def _draw(subject: Subject) -> VegaChart:
    sheet, threads = Sheet(square=1.0), threads_of(subject.trace)
    _grid(sheet, subject.trace)
    _block(sheet, threads)
    _warp(sheet, threads)
    return finished(sheet)


def _grid(sheet: Sheet, kernel_trace: KernelTrace) -> None:
    blocks = blocks_of(kernel_trace)
    first, operand = blocks[0], kernel_trace.matrices["c"].operand
    shown = Area(0, 0, min(operand.rows, _MOST_TILES * first.rows), min(operand.cols, _MOST_TILES * first.cols))
    patches = [
        Patch(Piece("", area.row, area.col, area.rows, area.cols), BLUE if area == first else _PALE)
        for area in dict.fromkeys(blocks)
        if shown.holds((area.row, area.col))
    ]
    title = f"C: blocks of {first.rows} x {first.cols}"
    panel(sheet, (0, 0), _SIZE, title, shown, patches)


def _block(sheet: Sheet, threads: Mapping[Cell, tuple[int, int]]) -> None:
    owners = {cell: warp for cell, (warp, _lane) in threads.items()}
    first = min(owners.values())
    own = Area.around([cell for cell, warp in owners.items() if warp == first])
    patches = [
        Patch(Piece("", p.row, p.col, p.rows, p.cols), BLUE if p.owner == first else _striped(p.owner), f"w{p.owner}",
              "white" if p.owner == first else "#333333")
        for p in pieces(owners)
    ]  # fmt: skip
    title = f"a block: {len(set(owners.values()))} warps, {own.rows} x {own.cols}"
    panel(sheet, (_STEP, 0), _SIZE, title, Area.around(owners), patches)


def _warp(sheet: Sheet, threads: Mapping[Cell, tuple[int, int]]) -> None:
    first = min(threads.values())[0]
    owners = {cell: lane for cell, (warp, lane) in threads.items() if warp == first}
    area = crowded(owners)
    marked = owners[area.row, area.col] if (area.row, area.col) in owners else min(owners.values())
    found = pieces({cell: lane for cell, lane in owners.items() if area.holds(cell)})
    own = [piece for piece in found if piece.owner == marked]
    patches = [
        Patch(Piece("", p.row, p.col, p.rows, p.cols), ORANGE if p.owner == marked else _striped(p.owner),
              str(p.owner), "#333333")
        for p in found
    ]  # fmt: skip
    times = f"{len(own)} of " if len(own) > 1 else ""
    title = f"a warp: lane {marked} has {times}{own[0].rows} x {own[0].cols}"
    part = "" if area == Area.around(owners) else ", upper left"
    panel(sheet, (2 * _STEP, 0), _SIZE, title + part, area, patches)


def _striped(number: int) -> str:
    return _PALER if number % 2 else _PALE


DRAWING = Drawing(
    name="tile_hierarchy",
    place=12,
    title="Block, warp, thread",
    caption="From the first block's traced stores to the result: its tile among those of all blocks, the part of its "
    "first warp, and the pieces of that warp's first lane.",
    applies=lambda subject: subject.on_gpu and subject.kernel.op == "gemm" and bool(threads_of(subject.trace)),
    draw=_draw,
)
