"""Which warp and which lane moves which element of A, B and C."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gemmlab.core.counters import BARRIER
from gemmlab.core.trace import LANES, Access
from gemmlab.measure.tracing import KernelTrace
from gemmlab.plots.pictures.cells import (
    Area,
    Patch,
    Piece,
    below_each_other,
    ink_on,
    lane_colour,
    panel,
    pieces,
    ranges,
    side_by_side,
)
from gemmlab.plots.pictures.drawing import Drawing, Subject

if TYPE_CHECKING:
    import altair as alt

Cell = tuple[int, int]
OVERVIEW, DETAIL = 190, 360
"""Pixels that the panels are wide."""
_MOST_PIECES = 420
"""In a detail: more would be too small to be seen."""


@dataclass(frozen=True, slots=True)
class Map:
    """What a block's threads move of one operand."""

    operand: str
    what: str
    warps: Mapping[Cell, tuple[int, ...]]
    """Element (row, column) -> the warps that move it, in order."""
    lanes: Mapping[Cell, tuple[int, ...]]
    """The same of the first warp that moves any, and its lanes."""
    warp: int
    """Which that is."""


def maps(traced: KernelTrace) -> Iterator[Map]:
    """For each operand what is loaded first of it, and for the result what is stored."""
    for name, matrix in traced.matrices.items():
        written = matrix.operand.role != "in"
        accesses = [a for a in traced.trace.accesses if a.store] if written else first_loads(traced)
        moved = traced.moves(name, accesses)
        if not moved.row.size:
            continue
        places = list(zip(moved.row.tolist(), moved.col.tolist(), strict=True))
        warp = int(moved.warp.min())
        lanes = [lane if of == warp else -1 for of, lane in zip(moved.warp.tolist(), moved.lane.tolist(), strict=True)]
        what = "stored" if written else "loaded first"
        yield Map(name.upper(), what, _owners(places, moved.warp.tolist()), _owners(places, lanes), warp)


def first_loads(traced: KernelTrace) -> list[Access]:
    """What each warp reads of global memory before its first barrier; without one, once from each instruction."""
    steps = traced.trace.steps
    barriers: dict[int, int] = {}
    sites = [site.kind == BARRIER for site in traced.trace.observation.counters.sites]
    for order, (warp, at) in enumerate(zip(steps.columns["warp"], steps.columns["instruction"], strict=True)):
        if sites[at]:
            barriers.setdefault(int(warp), order)
    found, seen = [], set()
    for access in traced.trace.accesses_of(space="global"):
        key = (access.site.address, access.warp)
        early = access.order < barriers[access.warp] if access.warp in barriers else key not in seen
        if early and not access.store:
            found.append(access)
        seen.add(key)
    return found


def _owners(places: Iterable[Cell], owners: Iterable[int]) -> dict[Cell, tuple[int, ...]]:
    """Who moves each place, sorted; -1 is nobody."""
    found: dict[Cell, set[int]] = {}
    for place, owner in zip(places, owners, strict=True):
        if owner >= 0:
            found.setdefault(place, set()).add(owner)
    return {place: tuple(sorted(who)) for place, who in found.items()}


def detail_area(lanes: Mapping[Cell, tuple[int, ...]]) -> Area:
    """Where a warp's elements lie; of too many pieces the upper left part."""
    area = Area.around(lanes)
    while len(pieces({cell: who for cell, who in lanes.items() if area.holds(cell)})) > _MOST_PIECES:
        halved = (area.rows, -(-area.cols // 2)) if area.cols >= area.rows else (-(-area.rows // 2), area.cols)
        area = Area(area.row, area.col, *halved)
    return area


def _draw(subject: Subject) -> alt.VConcatChart:
    return below_each_other(*(side_by_side(_overview(each), _detail(each)) for each in maps(subject.trace)))


def _overview(of: Map) -> alt.LayerChart:
    area = Area.around(of.warps)
    count = 1 + max(max(who) for who in of.warps.values())
    patches = [
        Patch(_named(piece), lane_colour(piece.owner[0], count), "w" + ranges(piece.owner),
              ink_on(piece.owner[0] / max(1, count - 1)))
        for piece in pieces(of.warps)
    ]  # fmt: skip
    return panel(f"{of.operand} {of.what}: warps", area, patches, (OVERVIEW, _height(area)))


def _detail(of: Map) -> alt.LayerChart:
    area = detail_area(of.lanes)
    inside = {cell: who for cell, who in of.lanes.items() if area.holds(cell)}
    patches = [
        Patch(_named(piece), lane_colour(piece.owner[0]), ranges(piece.owner), ink_on(piece.owner[0] / (LANES - 1)))
        for piece in pieces(inside)
    ]
    part = "" if len(inside) == len(of.lanes) else ", upper left"
    return panel(f"warp {of.warp}: its lanes{part}", area, patches, (DETAIL, _height(Area.around(of.warps))))


def _named(piece: Piece[tuple[int, ...]]) -> Piece[str]:
    return Piece("", piece.row, piece.col, piece.rows, piece.cols)


def _height(area: Area) -> int:
    """Pixels: one row needs little, and no panel more than is wide."""
    return min(190, max(28, 14 * area.rows))


DRAWING = Drawing(
    name="thread_data",
    place=10,
    title="Which thread moves which element",
    caption="By traced addresses of the first block, at the left by warp, at the right by lane of its first warp: what "
    "is read of A and B before the first barrier (without one: once by each instruction), and what is stored to C.",
    applies=lambda subject: subject.on_gpu and subject.kernel.op == "gemm" and any(maps(subject.trace)),
    draw=_draw,
)
