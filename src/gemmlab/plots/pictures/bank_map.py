"""One warp's accesses to shared memory: which bank serves which lane in which wavefront."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gemmlab.core.trace import Access
from gemmlab.measure.patterns import pattern_of, served_together
from gemmlab.measure.tracing import BANKS, WORD, KernelTrace, bank
from gemmlab.plots.chart import BLACK, BLUE, SKY, VERMILION
from gemmlab.plots.pictures.cells import below_each_other, ranges
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.sheet import BESIDE, Sheet

if TYPE_CHECKING:
    import altair as alt

ALONE, SHARED, LATE = "one lane", "one word, several lanes", "after another word of the bank"
COLOURS = {ALONE: BLUE, SHARED: SKY, LATE: VERMILION}
_SQUARE, _TALL, _MOST = 14.0, 0.95, 4
_LETTER, _MARGIN = 5.6, 5.5


@dataclass(frozen=True, slots=True)
class Served:
    """What one wavefront brings some lanes: neighbouring words, as wide as the access."""

    wavefront: int
    bank: int
    """The first of them."""
    lanes: tuple[int, ...]
    late: bool
    """Whether other words of the same banks went before, for lanes of the same group."""


@dataclass(frozen=True, slots=True)
class BankMap:
    """One access, wavefront after wavefront."""

    access: Access
    served: tuple[Served, ...]
    groups: tuple[tuple[int, tuple[int, ...]], ...]
    """(first wavefront, lanes) of those who are served together."""
    wavefronts: int
    ideal: int


def bank_map(access: Access) -> BankMap:
    """Who is served when, by the rule of the emulator (`measure.patterns`); the order within a group is by address."""
    served: list[Served] = []
    groups: list[tuple[int, tuple[int, ...]]] = []
    start = 0
    for group in served_together(access):
        units: dict[int, list[int]] = {}
        for lane in group:
            units.setdefault(access.addresses[lane] // max(WORD, access.width), []).append(lane)
        fullest: dict[int, int] = {}
        for unit in sorted(units):
            first = bank(unit * max(WORD, access.width))
            turn = fullest.get(first, 0)
            fullest[first] = turn + 1
            served.append(Served(start + turn, first, tuple(units[unit]), turn > 0))
        groups.append((start, group))
        start += max(fullest.values())
    found = pattern_of(access)
    return BankMap(access, tuple(served), tuple(groups), start, found.ideal)


def chosen(traced: KernelTrace) -> list[BankMap]:
    """Of each instruction its worst access, alike ones once; the worst first, few of them."""
    worst: dict[int, BankMap] = {}
    for access in _distinct(traced.trace.accesses_of(space="shared")):
        found, before = bank_map(access), worst.get(access.site.address)
        if before is None or (found.wavefronts, len(access.lanes)) > (before.wavefronts, len(before.access.lanes)):
            worst[access.site.address] = found
    alike: dict[tuple[object, ...], BankMap] = {}
    for found in sorted(worst.values(), key=lambda one: -one.access.site.wavefronts):
        shape = tuple((one.wavefront, one.lanes, one.late) for one in found.served)
        alike.setdefault((found.access.site.base_opcode, found.access.width, shape), found)
    ranked = sorted(alike.values(), key=lambda one: (-(one.wavefronts - one.ideal), one.access.store, -len(one.served)))
    return ranked[:_MOST]


def _distinct(accesses: Iterable[Access]) -> Iterator[Access]:
    """The first of those of an instruction that differ in where they begin only."""
    seen = set()
    for access in accesses:
        lanes = access.lanes
        first = access.addresses[lanes[0]]
        shape = (access.site.address, access.on, tuple(access.addresses[lane] - first for lane in lanes))
        if shape not in seen:
            seen.add(shape)
            yield access


def _draw(subject: Subject) -> alt.VConcatChart:
    found = chosen(subject.trace)
    return below_each_other(*map(_map, found), _key({_kind(one) for each in found for one in each.served}))


def _key(kinds: set[str]) -> alt.LayerChart:
    """What the colours say, once for all maps."""
    sheet, at = Sheet(square=_SQUARE), 0.0
    for kind in (kind for kind in COLOURS if kind in kinds):
        sheet.box(at, 0, kind)
        sheet.word(at + 1.4, 0.5, kind, size=10, align="left", colour=BESIDE)
        at += 3 + len(kind) * _LETTER / _SQUARE
    sheet.word(-_MARGIN, 0.5, " ")
    sheet.word(BANKS, 0.5, " ")
    return sheet.chart(COLOURS, hidden=True)


def _kind(one: Served) -> str:
    return LATE if one.late else SHARED if len(one.lanes) > 1 else ALONE


def _map(found: BankMap) -> alt.LayerChart:
    sheet = Sheet(square=_SQUARE, tall=_TALL)
    words = max(1, found.access.width // WORD)
    for one in found.served:
        kind = _kind(one)
        sheet.box(one.bank, one.wavefront, kind, wide=words)
        label = next(
            (text for text in (ranges(one.lanes), f"{one.lanes[0]}+") if len(text) * _LETTER <= words * _SQUARE),
            str(one.lanes[0]),
        )
        ink = BLACK if kind == SHARED else "white"
        sheet.word(one.bank + words / 2, one.wavefront + 0.5, label, size=9, colour=ink)
    for start, lanes in found.groups:
        if start:
            sheet.stroke(0, start, BANKS, start, "#666666")
        sheet.word(-0.4, start + 0.5, f"lanes {_short(lanes)}", size=9, align="right", colour=BESIDE)
    sheet.frame(0, 0, BANKS, found.wavefronts, "#888888", width=0.8)
    for number in (0, 8, 16, 24, 31):
        sheet.word(number + 0.5, -0.6, str(number), size=9, colour=BESIDE)
    site, ideal = found.access.site, "" if found.wavefronts == found.ideal else f", {found.ideal} at best"
    line = f", {Path(site.file).name}:{site.line}" if site.line else ""
    title = f"{site.opcode}{line}: {found.wavefronts} wavefront{'s' * (found.wavefronts != 1)}{ideal}"
    sheet.word(0, -2.0, title, size=12, align="left")
    sheet.word(-_MARGIN, 0, " ")
    return sheet.chart(COLOURS, hidden=True)


def _short(lanes: tuple[int, ...]) -> str:
    text = ranges(lanes)
    return text if len(text) <= 6 else f"{lanes[0]}..{lanes[-1]}"


DRAWING = Drawing(
    name="bank_map",
    place=22,
    title="Who is served by which bank of shared memory, and when",
    caption="A column a bank, a row a wavefront, in the boxes the lanes that are served, between lines those that may "
    "be served together (`0+`: 0 and others); of each kind of access the worst of the first block, red where a bank is "
    "asked for one word after another.",
    applies=lambda subject: subject.on_gpu and bool(chosen(subject.trace)),
    draw=_draw,
)
