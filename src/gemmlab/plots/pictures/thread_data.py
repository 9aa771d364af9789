"""Picture of the warps and lanes that load or store each element of A, B and C."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gemmlab.core.counters import BARRIER
from gemmlab.core.trace import LANES, Access
from gemmlab.observe.matrix_trace import KernelTrace
from gemmlab.plots.chart import VegaChart
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.owners import Area, Piece, crowded, ink_on, lane_colour, pieces, ranges
from gemmlab.plots.pictures.plot import Patch, finished, panel
from gemmlab.plots.pictures.sheet import Sheet

Cell = tuple[int, int]
OVERVIEW, DETAIL = 190, 360
"""Widths of the panels in pixels."""
_HIGHEST, _LOWEST, _ROW, _GAP = 190.0, 28.0, 14.0, 48.0


@dataclass(frozen=True, slots=True)
class Map:
    """The elements of one operand that a block's threads load or store."""

    operand: str
    what: str
    warps: Mapping[Cell, tuple[int, ...]]
    """Element (row, column) -> the warps that move it, ascending."""
    lanes: Mapping[Cell, tuple[int, ...]]
    """Element (row, column) -> the lanes of warp `warp` that move it, ascending."""
    warp: int
    """The lowest number of a warp that moves any element."""


def maps(kernel_trace: KernelTrace) -> Iterator[Map]:
    """Yield a map for each operand that is moved: of the `first_loads` of an input, of the stores to the result."""
    for name, matrix in kernel_trace.matrices.items():
        written = matrix.operand.role != "in"
        accesses = [a for a in kernel_trace.trace.accesses if a.store] if written else first_loads(kernel_trace)
        moved = kernel_trace.moves(name, accesses)
        if not moved.row.size:
            continue
        places = list(zip(moved.row.tolist(), moved.col.tolist(), strict=True))
        warp = int(moved.warp.min())
        lanes = [lane if of == warp else -1 for of, lane in zip(moved.warp.tolist(), moved.lane.tolist(), strict=True)]
        what = "stored" if written else "loaded first"
        yield Map(name.upper(), what, _owners(places, moved.warp.tolist()), _owners(places, lanes), warp)


def first_loads(kernel_trace: KernelTrace) -> list[Access]:
    """Return the loads from global memory of each warp before its first barrier.

    For a warp without barriers, these are the first execution of each load instruction.
    """
    steps = kernel_trace.trace.steps
    barriers: dict[int, int] = {}
    sites = [site.kind == BARRIER for site in kernel_trace.trace.observation.counters.sites]
    for order, (warp, at) in enumerate(zip(steps.columns["warp"], steps.columns["instruction"], strict=True)):
        if sites[at]:
            barriers.setdefault(int(warp), order)
    found, keys = [], set()
    for access in kernel_trace.trace.accesses_of(space="global"):
        key = (access.site.address, access.warp)
        early = access.order < barriers[access.warp] if access.warp in barriers else key not in keys
        if early and not access.store:
            found.append(access)
        keys.add(key)
    return found


def _owners(places: Iterable[Cell], owners: Iterable[int]) -> dict[Cell, tuple[int, ...]]:
    """Return the sorted owners of each place; an owner of -1 is ignored."""
    found: dict[Cell, set[int]] = {}
    for place, owner in zip(places, owners, strict=True):
        if owner >= 0:
            found.setdefault(place, set()).add(owner)
    return {place: tuple(sorted(who)) for place, who in found.items()}


def _draw(subject: Subject) -> VegaChart:
    sheet, top = Sheet(square=1.0), 0.0
    for each in maps(subject.trace):
        area = Area.around(each.warps)
        high = min(_HIGHEST, max(_LOWEST, _ROW * area.rows))
        _overview(sheet, top, high, each, area)
        _detail(sheet, top, high, each)
        top += high + _GAP
    return finished(sheet)


def _overview(sheet: Sheet, top: float, high: float, of: Map, area: Area) -> None:
    last = max(1, *(max(who) for who in of.warps.values()))
    patches = [
        Patch(_named(piece), lane_colour(piece.owner[0], last + 1), "w" + ranges(piece.owner),
              ink_on(piece.owner[0] / last))
        for piece in pieces(of.warps)
    ]  # fmt: skip
    panel(sheet, (0, top), (OVERVIEW, high), f"{of.operand} {of.what}: warps", area, patches)


def _detail(sheet: Sheet, top: float, high: float, of: Map) -> None:
    area = crowded(of.lanes)
    inside = {cell: who for cell, who in of.lanes.items() if area.holds(cell)}
    patches = [
        Patch(_named(piece), lane_colour(piece.owner[0]), ranges(piece.owner), ink_on(piece.owner[0] / (LANES - 1)))
        for piece in pieces(inside)
    ]
    part = "" if len(inside) == len(of.lanes) else ", upper left"
    panel(sheet, (OVERVIEW + _GAP, top), (DETAIL, high), f"warp {of.warp}: its lanes{part}", area, patches)


def _named(piece: Piece[tuple[int, ...]]) -> Piece[str]:
    return Piece("", piece.row, piece.col, piece.rows, piece.cols)


DRAWING = Drawing(
    name="thread_data",
    place=10,
    title="The thread that moves each element",
    caption="From traced addresses of the first block: by warp at the left, by lane of its first warp at the right. "
    "Elements of A and B are those read before the first barrier (without a barrier, by the first load of each "
    "instruction); elements of C are those stored.",
    applies=lambda subject: subject.on_gpu and subject.kernel.op == "gemm" and any(maps(subject.trace)),
    draw=_draw,
)
