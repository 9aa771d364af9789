"""Picture of a thread's tile of sums in registers: their banks, and the order of the multiply-adds in a step of k."""

from __future__ import annotations

from gemmlab.core.errors import UsageError
from gemmlab.plots.chart import BLACK, VERMILION, VegaChart
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.kinds import loop_code
from gemmlab.plots.pictures.sheet import BESIDE, Sheet
from gemmlab.sass.register_tile import Factor, RegisterTile, register_tile

BANKS = ("#cfe5f5", "#fbe0b0", "#c5e8da", "#f1d3e2")
_HEADER = 3.4
"""Width of the row names, in squares."""
_INSET = 0.1
_PATH = 0.87
"""Place of the grey line's corners in a square, as a fraction of its width and of its height, clear of the words."""


def register_tile_chart(tile: RegisterTile) -> VegaChart:
    """Draw one square per sum with its register, coloured by bank, and the number of its multiply-add in the step.

    A grey line connects the sums in the order of the multiply-adds. A bar on the left edge means that the row's factor
    stays in the operand cache, one on the upper edge that the column's does. A red outline means that the sources lie
    in too few banks.
    """
    sheet = Sheet(square=46, tall=0.8)
    for place, factor in enumerate(tile.rows):
        sheet.word(-0.15, place + 0.5, _named(factor), size=10, align="right", colour=BESIDE)
    base = ""
    for place, factor in enumerate(tile.columns):
        sheet.word(place + 0.5, -0.45, f"R{factor.register}", size=10, colour=BESIDE)
        # The whole address only if the base changes, because adjacent whole addresses would overlap.
        where, base = (f"+{factor.offset:#x}" if factor.base == base else factor.address), factor.base
        sheet.word(place + 0.5, -0.18, where if factor.base else "", size=9, colour=BESIDE)
    sheet.word(-_HEADER, -0.3, " ", size=9)
    for cell in tile.cells:
        x, y = cell.column, cell.row
        sheet.box(x, y, _bank(cell.bank))
        sheet.word(x + 0.55, y + 0.55, f"R{cell.register}", size=12)
        sheet.word(x + 0.24, y + 0.24, str(cell.order + 1), size=9, colour=BESIDE)
        if "row" in cell.reuse:
            sheet.stroke(x + 0.04, y + _INSET, x + 0.04, y + 1 - _INSET, BLACK, width=3)
        if "column" in cell.reuse:
            sheet.stroke(x + _INSET, y + 0.04, x + 1 - _INSET, y + 0.04, BLACK, width=3)
        if cell.conflict_cycles:
            sheet.frame(x + 0.06, y + 0.06, 0.88, 0.88, VERMILION, width=2)
    for one, two in zip(tile.cells, tile.cells[1:], strict=False):
        far = abs(one.column - two.column) + abs(one.row - two.row) > 1
        ends = (one.column + _PATH, one.row + _PATH, two.column + _PATH, two.row + _PATH)
        sheet.stroke(*ends, "#555555", width=1.2, opacity=0.3 if far else 0.8)
    return sheet.chart({_bank(bank): BANKS[bank] for bank in range(tile.banks)}, "the sum's register lies in")


def _named(factor: Factor) -> str:
    return f"R{factor.register} {factor.address}" if factor.address else f"R{factor.register}"


def _tile(subject: Subject) -> RegisterTile | None:
    return register_tile(loop_code(subject).instructions, subject.arch) if subject.on_gpu else None


def _applies(subject: Subject) -> bool:
    tile = _tile(subject)
    return tile is not None and len(tile.cells) > 1


def _draw(subject: Subject) -> VegaChart:
    tile = _tile(subject)
    if tile is None:
        raise UsageError(f"{subject.kernel.id}: its multiply-adds form no tile")
    return register_tile_chart(tile)


def _bank(number: int) -> str:
    return f"bank {number}"


DRAWING = Drawing(
    name="register_tile",
    place=60,
    title="The tile of sums in registers, and the order of the multiply-adds",
    caption="One step of k, from the machine code. Each square is a sum with its register, coloured by the register's "
    "bank, and the number of its multiply-add; the grey line follows that order. A bar at the left or upper edge means "
    "that `.reuse` keeps the row's or column's factor, a red outline that the sources lie in too few banks.",
    applies=_applies,
    draw=_draw,
)
