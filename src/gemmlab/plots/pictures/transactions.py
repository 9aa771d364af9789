"""One warp's requests to global memory: which lane asks which 32-byte sector, and how much of each is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gemmlab.core.trace import LANES, Access
from gemmlab.measure.patterns import LINE, SECTOR, SHARED_BYTES
from gemmlab.measure.tracing import KernelTrace
from gemmlab.plots.chart import BLACK, BLUE, GREEN, ORANGE, PURPLE
from gemmlab.plots.pictures.cells import below_each_other
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.sheet import BESIDE, Sheet

if TYPE_CHECKING:
    import altair as alt

COLOURS = (BLUE, ORANGE, GREEN, PURPLE)
"""Of the lanes that one pass serves: a warp, or its halves or quarters."""
SCATTERED = "#9a3412"
_SQUARE, _WIDE, _MOST = 13.0, 0.8, 6


@dataclass(frozen=True, slots=True)
class Sector:
    """32 bytes that a warp asks for."""

    address: int
    lanes: tuple[int, ...]
    """That ask for some of it."""
    used: int
    """Bytes of it that any lane asks for."""


def sectors_of(access: Access) -> tuple[Sector, ...]:
    """In the order of their addresses."""
    asked: dict[int, set[int]] = {}
    lanes: dict[int, set[int]] = {}
    for lane in access.lanes:
        for byte in access.bytes_of(lane):
            asked.setdefault(byte // SECTOR, set()).add(byte)
            lanes.setdefault(byte // SECTOR, set()).add(lane)
    return tuple(Sector(n * SECTOR, tuple(sorted(lanes[n])), len(asked[n])) for n in sorted(asked))


def requests(traced: KernelTrace) -> list[Access]:
    """For each operand, direction and width the first warp's fullest request, the first of its kind."""
    found: dict[tuple[str, bool, int], Access] = {}
    for access in traced.trace.accesses_of(space="global"):
        operand = traced.operand_of(access)
        key = (operand, access.store, access.width)
        best = found.get(key)
        if operand and (best is None or len(access.lanes) > len(best.lanes)):
            found[key] = access
    return sorted(found.values(), key=lambda access: (access.store, traced.operand_of(access)))[:_MOST]


def _draw(subject: Subject) -> alt.VConcatChart:
    traced = subject.trace
    return below_each_other(*(_request(traced.operand_of(access), access) for access in requests(traced)))


def _request(operand: str, access: Access) -> alt.LayerChart:
    sectors = sectors_of(access)
    group = min(LANES, SHARED_BYTES // access.width)
    sheet = Sheet(square=_SQUARE, tall=_WIDE)
    for y, sector in enumerate(sectors):
        for first, count, colour in _runs(sector.lanes, group):
            sheet.box(first, y, colour, wide=count)
        sheet.word(-0.4, y + 0.5, f"+{sector.address - sectors[0].address}", size=9, align="right", colour=BESIDE)
        ink = BESIDE if sector.used == SECTOR else SCATTERED
        sheet.word(LANES + 0.4, y + 0.5, f"{sector.used} of {SECTOR}", size=9, align="left", colour=ink)
        if y and sector.address // LINE != sectors[y - 1].address // LINE:
            sheet.stroke(0, y, LANES, y, "#666666")
    for lane in range(0, LANES + 1, group):
        sheet.stroke(lane, 0, lane, len(sectors), "#bbbbbb")
    sheet.frame(0, 0, LANES, len(sectors), "#888888", width=0.8)
    for lane in (0, 8, 16, 24, 31):
        sheet.word(lane + 0.5, -0.7, str(lane), size=9, colour=BESIDE)
    used = sum(sector.used for sector in sectors)
    lines = len({sector.address // LINE for sector in sectors})
    verb = "writes" if access.store else "reads"
    title = (
        f"{access.site.opcode} {verb} {operand.upper()}: {_many(len(sectors), 'sector')} in {_many(lines, 'line')}, "
        f"{used} of {SECTOR * len(sectors)} bytes used"
    )
    sheet.word(0, -2.2, title, size=12, align="left", colour=BLACK)
    sheet.word(-4, 0, " ")
    sheet.word(LANES + 5, 0, " ")
    return sheet.chart({colour: colour for colour in COLOURS}, hidden=True)


def _runs(lanes: Sequence[int], group: int) -> list[tuple[int, int, str]]:
    """Neighbouring lanes of one group: first, how many, colour."""
    found: list[tuple[int, int, str]] = []
    for lane in lanes:
        colour = COLOURS[lane // group]
        if found and found[-1][0] + found[-1][1] == lane and found[-1][2] == colour:
            found[-1] = (found[-1][0], found[-1][1] + 1, colour)
        else:
            found.append((lane, 1, colour))
    return found


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"


DRAWING = Drawing(
    name="transactions",
    place=20,
    title="What one warp's request asks of global memory",
    caption="A column a lane, a row a 32-byte sector in the order of addresses (bytes from the first at the left), a "
    "line between those of two 128-byte lines; at the right the bytes of a sector that are used; colours part halves "
    "of a warp for 8-byte accesses, quarters for 16-byte ones.",
    applies=lambda subject: subject.on_gpu and bool(requests(subject.trace)),
    draw=_draw,
)
