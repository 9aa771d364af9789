"""Picture of a warp's requests to global memory: the lanes that access each 32-byte sector, and its used bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemmlab.core.trace import LANES, Access
from gemmlab.observe.access_patterns import LINE, SECTOR, SHARED_BYTES
from gemmlab.observe.matrix_trace import KernelTrace
from gemmlab.plots.chart import BLUE, GREEN, ORANGE, PURPLE, VegaChart
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.plot import Plot, finished
from gemmlab.plots.pictures.sheet import BESIDE, Sheet

COLOURS = (BLUE, ORANGE, GREEN, PURPLE)
"""Colours of the groups of lanes that are served together: a warp, or its halves or quarters."""
SCATTERED = "#9a3412"
_WIDE, _HIGH, _GAP, _MOST = 13.0, 10.4, 44.0, 6


@dataclass(frozen=True, slots=True)
class Sector:
    """A 32-byte sector that a warp's request accesses."""

    address: int
    lanes: tuple[int, ...]
    """Lanes that access some of its bytes."""
    used: int
    """Number of its bytes that any lane accesses."""


def sectors_of(access: Access) -> tuple[Sector, ...]:
    """Return the sectors of an access by ascending address."""
    bytes_of: dict[int, set[int]] = {}
    lanes: dict[int, set[int]] = {}
    for lane in access.lanes:
        for byte in access.bytes_of(lane):
            bytes_of.setdefault(byte // SECTOR, set()).add(byte)
            lanes.setdefault(byte // SECTOR, set()).add(lane)
    return tuple(Sector(n * SECTOR, tuple(sorted(lanes[n])), len(bytes_of[n])) for n in sorted(bytes_of))


def requests(kernel_trace: KernelTrace) -> list[Access]:
    """Return the requests to draw: for each operand, direction and width the first request with the most lanes.

    At most `_MOST` are returned, loads before stores.
    """
    found: dict[tuple[str, bool, int], Access] = {}
    for access in kernel_trace.trace.accesses_of(space="global"):
        operand = kernel_trace.operand_of(access)
        key = (operand, access.store, access.width)
        best = found.get(key)
        if operand and (best is None or len(access.lanes) > len(best.lanes)):
            found[key] = access
    return sorted(found.values(), key=lambda access: (access.store, kernel_trace.operand_of(access)))[:_MOST]


def _draw(subject: Subject) -> VegaChart:
    kernel_trace, sheet, top = subject.trace, Sheet(square=1.0), 0.0
    for access in requests(kernel_trace):
        top += _request(Plot(sheet, 0, top, _WIDE, _HIGH), _shown(kernel_trace.operand_of(access)), access)
    return finished(sheet)


def _request(plot: Plot, operand: str, access: Access) -> float:
    """Draw one request and return its height in pixels."""
    sectors = sectors_of(access)
    group = min(LANES, SHARED_BYTES // access.width)
    for y, sector in enumerate(sectors):
        for first, count, colour in _runs(sector.lanes, group):
            plot.box(first, y, colour, wide=count)
        plot.word(0, y + 0.5, f"+{sector.address - sectors[0].address}", dx=-5, align="right")
        ink = BESIDE if sector.used == SECTOR else SCATTERED
        plot.word(LANES, y + 0.5, f"{sector.used} of {SECTOR}", dx=5, align="left", colour=ink)
        if y and sector.address // LINE != sectors[y - 1].address // LINE:
            plot.stroke(0, y, LANES, y, "#666666")
    for lane in range(0, LANES + 1, group):
        plot.stroke(lane, 0, lane, len(sectors), "#bbbbbb")
    plot.frame(LANES, len(sectors))
    for lane in (0, 8, 16, 24, 31):
        plot.word(lane + 0.5, 0, str(lane), dy=-7)
    used = sum(sector.used for sector in sectors)
    lines = len({sector.address // LINE for sector in sectors})
    plot.title(
        f"{access.site.opcode} {'writes' if access.store else 'reads'} {operand}: "
        f"{_many(len(sectors), 'sector')} in {_many(lines, 'line')}, {used} of {SECTOR * len(sectors)} bytes used"
    )
    return len(sectors) * _HIGH + _GAP


def _runs(lanes: Sequence[int], group: int) -> list[tuple[int, int, str]]:
    """Return the runs of adjacent lanes in one group as (first lane, number of lanes, colour)."""
    found: list[tuple[int, int, str]] = []
    for lane in lanes:
        colour = COLOURS[lane // group]
        if found and found[-1][0] + found[-1][1] == lane and found[-1][2] == colour:
            found[-1] = (found[-1][0], found[-1][1] + 1, colour)
        else:
            found.append((lane, 1, colour))
    return found


def _shown(operand: str) -> str:
    """Return an operand's name as texts show it: matrices as capitals."""
    return operand.upper() if len(operand) == 1 and operand != "x" else operand


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"


DRAWING = Drawing(
    name="transactions",
    place=20,
    title="Sectors of global memory that a warp's request accesses",
    caption="Each column is a lane, each row a 32-byte sector by ascending address (at the left its offset from the "
    "first, at the right its used bytes); lines separate 128-byte cache lines. Colours distinguish halves of the warp "
    "for 8-byte accesses, quarters for 16-byte ones.",
    applies=lambda subject: subject.on_gpu and bool(requests(subject.trace)),
    draw=_draw,
)
