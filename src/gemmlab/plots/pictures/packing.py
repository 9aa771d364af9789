"""Picture of packing: the places of the elements of A and B in a CPU kernel's packed copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gemmlab.observe.element_use import PACKED, Packed, find_element_use
from gemmlab.ops.catalog import find_op
from gemmlab.plots.chart import VegaChart
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.sheet import BESIDE, Sheet

PALETTE = ("#cfe5f5", "#fbe0b0", "#c5e8da", "#f1d3e2", "#e3e0a8", "#d9d2ee")
_PADDING, _IN_PLACE = "padding", "read in place"
_SIZE = "14x40x4"
_MOST = {"m": 24, "n": 40, "k": 8}
_NOTES = 1 << 16
_WIDEST = 40
"""Most floats of a row that are drawn."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A packed piece of one operand: `depth` steps of k, which begin `stride` floats apart."""

    operand: str
    offset: int
    """Offset of its first float in the workspace."""
    first: int
    """The first row of op(A), or column of op(B), in the panel."""
    count: int
    """Number of rows of op(A), or of columns of op(B), in the panel."""
    stride: int
    depth: int


def panels_of(packed: Iterable[Packed], operand: str, along: str) -> tuple[Panel, ...]:
    """Return the panels of a packed operand, made of its rows or columns (`along` is `"row"` or `"col"`).

    Adjacent rows or columns belong to one panel if their copies are adjacent in the workspace at the same time and
    agree in stride and number of steps of k. Time matters, because a place in the workspace may be used again for the
    next panel.
    """
    turn: dict[int, int] = {}
    lines: dict[int, dict[int, tuple[int, int]]] = {}
    for one in packed:
        turn[one.offset] = turn.get(one.offset, -1) + 1
        if one.operand == operand:
            line, step = (one.row, one.col) if along == "row" else (one.col, one.row)
            lines.setdefault(line, {}).setdefault(step, (one.offset, turn[one.offset]))
    found: list[Panel] = []
    before: tuple[int, ...] = ()
    for line, steps in sorted(lines.items()):
        depth = len(steps)
        (start, used), following = steps[min(steps)], steps.get(min(steps) + 1)
        stride = following[0] - start if following else 0
        here = (start, used, stride, depth)
        if before and here == (before[0] + 1, *before[1:]) and found[-1].first + found[-1].count == line:
            last = found.pop()
            found.append(Panel(operand, last.offset, last.first, last.count + 1, stride, depth))
        else:
            found.append(Panel(operand, start, line, 1, stride, depth))
        before = here
    return tuple(found)


def packing_chart(packed: Sequence[Packed], shapes: Mapping[str, tuple[int, int]], transposed: str = "") -> VegaChart:
    """Draw each operand's matrix, then its panels as they lie in memory: one row per step of k, padding in grey.

    An operand without panels is only named, as read in place. `transposed` lists the operands that are stored
    transposed, such as `"ab"`.
    """
    sheet = Sheet(square=26, tall=0.7)
    y = 0.0
    colours: dict[str, str] = {}
    for operand in ("a", "b"):
        along = "row" if (operand == "a") is (operand not in transposed) else "col"
        panels = panels_of(packed, operand, along)
        rows, cols = shapes[operand]
        if panels:
            y = _matrix(sheet, panels, along, rows, cols, y) + 2.2
            for panel in panels:
                y = _panel(sheet, panel, along, y) + 1.8
            names = [_named(panel, along) for panel in panels]
            colours |= {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(names, len(colours))}
        else:
            sheet.word(0, y, f"{operand.upper()}  {rows} x {cols}: read in place", size=11, align="left")
            y += 2.0
    return sheet.chart({**colours, _PADDING: "#e4e4e4", _IN_PLACE: "#f6f6f6"})


def _matrix(sheet: Sheet, panels: Sequence[Panel], along: str, rows: int, cols: int, y: float) -> float:
    piece = "panel" if panels[0].operand == "a" else "strip"
    pieces = f"{len(panels)} {piece}{'s' * (len(panels) > 1)} of {'rows' if along == 'row' else 'columns'}"
    sheet.word(0, y - 0.6, f"{panels[0].operand.upper()}  {rows} x {cols}: {pieces}", size=11, align="left")
    shown = min(cols, _WIDEST)
    packed = {line for panel in panels for line in range(panel.first, panel.first + panel.count)}
    for line in range(rows if along == "row" else shown):
        if line not in packed and along == "row":
            sheet.box(0, y + line, _IN_PLACE, wide=shown)
        elif line not in packed:
            sheet.box(line, y, _IN_PLACE, high=rows)
    for panel in panels:
        for line in range(panel.first, panel.first + panel.count):
            if along == "row":
                sheet.box(0, y + line, _named(panel, along), wide=shown)
            elif line < shown:
                sheet.box(line, y, _named(panel, along), high=rows)
    for row in range(rows):
        for col in range(shown):
            sheet.word(col + 0.5, y + row + 0.5, f"{row},{col}", size=8)
    if shown < cols:
        sheet.word(shown + 0.2, y + 0.5, "...", align="left")
    return y + rows


def _panel(sheet: Sheet, panel: Panel, along: str, y: float) -> float:
    sheet.word(0, y - 0.6, f"{_named(panel, along)}, at float {panel.offset}", size=10, align="left", colour=BESIDE)
    shown = min(panel.stride, _WIDEST)
    for step in range(panel.depth):
        sheet.box(0, y + step, _named(panel, along), wide=min(panel.count, shown))
        if panel.count < shown:
            sheet.box(panel.count, y + step, _PADDING, wide=shown - panel.count)
        for place in range(min(panel.count, shown)):
            line = panel.first + place
            word = f"{line},{step}" if along == "row" else f"{step},{line}"
            sheet.word(place + 0.5, y + step + 0.5, word, size=8)
    return y + panel.depth


def _named(panel: Panel, along: str) -> str:
    last = panel.first + panel.count - 1
    return f"{panel.operand.upper()}, {'rows' if along == 'row' else 'columns'} {panel.first} to {last}"


def _draw(subject: Subject) -> VegaChart:
    op = find_op(subject.kernel.op)
    (problem,) = (subject.problem,) if subject.problem is not None else op.parse_sizes(_SIZE)
    # Every element is drawn twice with its indices, which would be illegible on larger matrices.
    fewer = {name: min(getattr(problem, name), most) for name, most in _MOST.items()}
    problem = replace(problem, **fewer, lda=0, ldb=0, ldc=0)
    use = find_element_use(subject.kernel, op, problem, subject.config, notes=_NOTES)
    shapes = {name: times.shape for name, times in use.first.items()}
    transposed = "a" * problem.trans_a + "b" * problem.trans_b
    return packing_chart(use.packed, {name: (shape[0], shape[1]) for name, shape in shapes.items()}, transposed)


DRAWING = Drawing(
    name="packing",
    place=72,
    title="The places of packed elements",
    caption="From a run on matrices of numbered elements. Squares show the row and column of each element, in the "
    "matrix and in the packed copies. A copy is in memory order, and each of its rows of squares is one step of k. "
    "Grey squares are padding.",
    applies=lambda subject: not subject.on_gpu and subject.kernel.op == "gemm" and PACKED in subject.kernel.args,
    draw=_draw,
)
