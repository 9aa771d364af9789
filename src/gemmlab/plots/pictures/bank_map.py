"""Picture of a warp's accesses to shared memory: the lanes that each bank serves in each wavefront."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gemmlab.core.trace import Access
from gemmlab.observe.access_patterns import pattern_of, served_together
from gemmlab.observe.matrix_trace import BANKS, WORD, KernelTrace, bank
from gemmlab.plots.chart import BLACK, BLUE, SKY, VERMILION, VegaChart
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.owners import ranges
from gemmlab.plots.pictures.plot import Plot, finished
from gemmlab.plots.pictures.sheet import Sheet

ALONE, SHARED, LATE = "one lane", "one word, several lanes", "after another word of the bank"
COLOURS = {ALONE: BLUE, SHARED: SKY, LATE: VERMILION}
_WIDE, _HIGH, _GAP, _MOST = 14.0, 13.3, 44.0, 4
_LETTER = 5.6


@dataclass(frozen=True, slots=True)
class Transfer:
    """Adjacent words that one wavefront transfers for some lanes: together as wide as a lane's access, at least one
    word.
    """

    wavefront: int
    bank: int
    """Bank of the first word."""
    lanes: tuple[int, ...]
    late: bool
    """True if an earlier wavefront transferred other words of the same banks for lanes of the same group."""


@dataclass(frozen=True, slots=True)
class BankMap:
    """One access, split into `wavefronts` wavefronts; `ideal` is their number at best, without bank conflicts."""

    access: Access
    served: tuple[Transfer, ...]
    groups: tuple[tuple[int, tuple[int, ...]], ...]
    """(first wavefront, lanes) of each group of lanes that can be served together."""
    wavefronts: int
    ideal: int


def bank_map(access: Access) -> BankMap:
    """Split an access into wavefronts by the emulator's rule (`observe.access_patterns`).

    Among words of one bank, the one with the lowest address goes first; the emulator does not state an order.
    """
    served: list[Transfer] = []
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
            served.append(Transfer(start + turn, first, tuple(units[unit]), turn > 0))
        groups.append((start, group))
        start += max(fullest.values())
    found = pattern_of(access)
    return BankMap(access, tuple(served), tuple(groups), start, found.ideal)


def chosen(kernel_trace: KernelTrace) -> list[BankMap]:
    """Return at most `_MOST` accesses to draw: the costliest one of each instruction, most bank conflicts first.

    Instructions with the same opcode, and with accesses that are served alike, count as one.
    """
    worst: dict[int, BankMap] = {}
    for access in _distinct(kernel_trace.trace.accesses_of(space="shared")):
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
    """Yield the accesses without repetition.

    Accesses of an instruction that differ only in their start address count as the same.
    """
    shapes = set()
    for access in accesses:
        lanes = access.lanes
        first = access.addresses[lanes[0]]
        shape = (access.site.address, access.on, tuple(access.addresses[lane] - first for lane in lanes))
        if shape not in shapes:
            shapes.add(shape)
            yield access


def _draw(subject: Subject) -> VegaChart:
    sheet, top = Sheet(square=1.0), 0.0
    for found in chosen(subject.trace):
        top += _map(Plot(sheet, 0, top, _WIDE, _HIGH), found)
    return finished(sheet, COLOURS)


def _kind(one: Transfer) -> str:
    return LATE if one.late else SHARED if len(one.lanes) > 1 else ALONE


def _map(plot: Plot, found: BankMap) -> float:
    """Draw one access and return its height in pixels."""
    words = max(1, found.access.width // WORD)
    for one in found.served:
        kind = _kind(one)
        plot.box(one.bank, one.wavefront, kind, wide=words)
        label = next(
            (text for text in (ranges(one.lanes), f"{one.lanes[0]}+") if len(text) * _LETTER <= words * _WIDE),
            str(one.lanes[0]),
        )
        ink = BLACK if kind == SHARED else "white"
        plot.word(one.bank + words / 2, one.wavefront + 0.5, label, colour=ink)
    for start, lanes in found.groups:
        if start:
            plot.stroke(0, start, BANKS, start, "#666666")
        plot.word(0, start + 0.5, f"lanes {_short(lanes)}", dx=-5, align="right")
    plot.frame(BANKS, found.wavefronts)
    for number in (0, 8, 16, 24, 31):
        plot.word(number + 0.5, 0, str(number), dy=-7)
    site, ideal = found.access.site, "" if found.wavefronts == found.ideal else f", {found.ideal} at best"
    line = f", {Path(site.file).name}:{site.line}" if site.line else ""
    plot.title(f"{site.opcode}{line}: {found.wavefronts} wavefront{'s' * (found.wavefronts != 1)}{ideal}")
    return found.wavefronts * _HIGH + _GAP


def _short(lanes: tuple[int, ...]) -> str:
    text = ranges(lanes)
    return text if len(text) <= 6 else f"{lanes[0]}..{lanes[-1]}"


DRAWING = Drawing(
    name="bank_map",
    place=22,
    title="Lanes served by each bank of shared memory in each wavefront",
    caption="Each column is a bank, each row a wavefront; a box names the lanes that are served (`0+`: 0 and others), "
    "and lines separate groups of lanes that may be served together. The picture shows the first block's worst access "
    "of each kind; red marks a word that had to wait because its bank first delivered another one.",
    applies=lambda subject: subject.on_gpu and bool(chosen(subject.trace)),
    draw=_draw,
)
