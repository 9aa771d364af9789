"""Picture of one warp's timeline: the instructions that it issues, and the loads and copies in flight meanwhile.

Time is the sum of the stall fields of the executed instructions. That is the least time that a warp needs; further
waits, for memory, other warps or a busy pipe, do not show in the code. A load is in flight from its issue to the first
instruction that waits for the dependency barrier that it sets. Products of warpgroups are under way until the warp
waits for their group, tensor copies until it waits at the barrier in shared memory that counts their bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gemmlab.plots.chart import VegaChart
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.kinds import (
    ADDRESS,
    BARRIER,
    GLOBAL,
    KINDS,
    LOAD,
    MATH,
    OTHER,
    STORE,
    executed_by,
    kind_of,
    loop_code,
)  # fmt: skip
from gemmlab.plots.pictures.sheet import BESIDE, Sheet
from gemmlab.sass.instruction import Instruction

LANES = (GLOBAL, STORE, BARRIER, LOAD, MATH, ADDRESS, OTHER)
UNDER_WAY = {GLOBAL: "#f6cdb8", LOAD: "#b9e4d6", MATH: "#bcd9ec"}
_BARRIER_AT = re.compile(r"\+(0x[0-9a-f]+)\]")
CLOSES = "gsb0"
"""Text of an operand that, among the HGMMA instructions of a group, only the last one has."""
_WIDTH = 820
_NONE = 7
_TICKS = 8


@dataclass(frozen=True, slots=True)
class Span:
    """An interval of one row of the picture, in cycles since the first instruction."""

    kind: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """The instructions and waits of one warp over its cycles."""

    issued: tuple[Span, ...]
    """Issued instructions; consecutive ones of one kind are one span."""
    flights: tuple[Span, ...]
    """Loads, copies and products under way, from their issue to the wait for them."""
    rounds: tuple[int, ...]
    """Cycles at which iterations of the main loop begin."""
    cycles: int
    """Cycle at which the timeline ends."""


def timeline(executed: Sequence[Instruction], header: int, rounds: int = 3) -> Timeline:
    """Return the timeline of a warp's executed instructions, up to `rounds` iterations of the main loop.

    `header` is the address of the loop's first instruction.
    """
    time = 0
    starts: list[int] = []
    marks: list[int] = []
    shown: list[Instruction] = []
    for instruction in executed:
        if instruction.address == header:
            if len(marks) == rounds:
                break
            marks.append(time)
        starts.append(time)
        shown.append(instruction)
        time += max(1, instruction.control.stall)
    issued: list[Span] = []
    for start, end, instruction in zip(starts, [*starts[1:], time], shown, strict=False):
        kind = kind_of(instruction)
        begin = issued.pop().begin if issued and issued[-1].kind == kind else start
        issued.append(Span(kind, begin, end))
    return Timeline(tuple(issued), tuple(_flights(shown, starts, time)), tuple(marks), time)


class _Groups:
    """Operations under way in groups, which are waited for in the order in which they were closed."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._groups: list[list[int]] = [[]]

    def begin(self, start: int) -> None:
        self._groups[-1].append(start)

    def close(self) -> None:
        self._groups.append([])

    def wait(self, left: int, start: int) -> Iterator[Span]:
        """Yield the operations of all closed groups but the newest `left`, as spans to `start`, and forget them."""
        while len(self._groups) - 1 > left:
            yield from (Span(self._kind, since, start) for since in self._groups.pop(0))

    def rest(self, end: int) -> Iterator[Span]:
        """Yield the operations that the warp has not waited for, as spans that end at `end`."""
        return (Span(self._kind, since, end) for group in self._groups for since in group)


class _Boxes:
    """Tensor copies by the copy engine, from their issue to this warp's wait at the barrier that counts their bytes.

    An arrival at a barrier announces bytes and begins a stage; the copies that follow belong to it. The warp waits for
    the stages in order. A wait is for a stage if the instruction has the same offset in shared memory as the latest
    arrival. A warp that never waits has no spans.
    """

    def __init__(self) -> None:
        self._announced = ""
        self._stages: list[list[int]] = []
        self._waited_at = -1

    def announce(self, instruction: Instruction) -> None:
        """Begin a stage with the arrival `instruction`."""
        self._announced = _offset(instruction)
        self._stages.append([])

    def begin(self, start: int) -> None:
        self._waited_at = -1
        if self._stages:
            self._stages[-1].append(start)

    def wait(self, instruction: Instruction, start: int) -> Iterator[Span]:
        """Yield the copies of the oldest stage, as spans that end at `start`, and forget them.

        Yield nothing for a wait at another barrier, or if the warp only tries the same wait again.
        """
        again, self._waited_at = self._waited_at == instruction.address, instruction.address
        if not again and self._stages and _offset(instruction) == self._announced:
            yield from (Span(GLOBAL, since, start) for since in self._stages.pop(0))

    def work(self) -> None:
        """Note that the warp does something between two waits, so that the second is not the first tried again."""
        self._waited_at = -1


def _offset(instruction: Instruction) -> str:
    found = _BARRIER_AT.search(instruction.text)
    return found[1] if found else ""


def _flights(shown: Sequence[Instruction], starts: Sequence[int], end: int) -> Iterator[Span]:
    pending: dict[int, list[tuple[str, int]]] = {}
    copies, products, boxes = _Groups(GLOBAL), _Groups(MATH), _Boxes()
    for start, instruction in zip(starts, shown, strict=True):
        control, kind = instruction.control, kind_of(instruction)
        for barrier in (number for number in range(6) if control.wait_mask >> number & 1):
            yield from (Span(what, since, start) for what, since in pending.pop(barrier, []))
        left = next((operand.value for operand in instruction.operands if operand.kind == "imm"), 0)
        if instruction.opcode == "LDGSTS":
            copies.begin(start)
        elif instruction.opcode == "LDGDEPBAR":
            copies.close()
        elif instruction.opcode == "DEPBAR":
            yield from copies.wait(left, start)
        elif instruction.opcode == "HGMMA":
            products.begin(start)
            boxes.work()
            if CLOSES in instruction.text:
                products.close()
        elif instruction.opcode == "WARPGROUP" and "DEPBAR" in instruction.modifiers:
            yield from products.wait(left, start)
        elif instruction.opcode == "UTMALDG":
            boxes.begin(start)
        elif instruction.opcode == "SYNCS" and "TRYWAIT" in instruction.modifiers:
            yield from boxes.wait(instruction, start)
        elif instruction.name == "SYNCS.ARRIVE.TRANS64":
            boxes.announce(instruction)
        elif kind in (GLOBAL, LOAD) and control.write_barrier != _NONE:
            pending.setdefault(control.write_barrier, []).append((kind, start))
    yield from (Span(kind, since, end) for flights in pending.values() for kind, since in flights)
    yield from copies.rest(end)
    yield from products.rest(end)


def pipeline_chart(line: Timeline) -> VegaChart:
    """Draw a timeline with one row per kind of instruction; pale bars are loads, copies and products under way."""
    lanes = [lane for lane in LANES if any(span.kind == lane for span in line.issued)]
    scale = _WIDTH / max(1, line.cycles)
    sheet = Sheet(square=1.0)
    high, bar = 26.0, 18.0
    for place, lane in enumerate(lanes):
        y = place * high
        sheet.word(-8, y + bar / 2, lane, size=11, align="right", colour=BESIDE)
        for span in _joined(span for span in line.flights if span.kind == lane):
            sheet.box(span.begin * scale, y, _pale(lane), wide=(span.end - span.begin) * scale, high=bar)
        for span in line.issued:
            if span.kind == lane:
                sheet.box(span.begin * scale, y + 4, lane, wide=max(0.7, (span.end - span.begin) * scale), high=bar - 8)
    bottom = len(lanes) * high
    for number, start in enumerate(line.rounds, 1):
        sheet.stroke(start * scale, -6, start * scale, bottom, "#999999")
        sheet.word(start * scale + 3, -12, f"round {number}", size=10, align="left", colour=BESIDE)
    for cycles in ticks(line.cycles):
        sheet.word(cycles * scale, bottom + 6, f"{cycles}", size=10, colour=BESIDE)
    sheet.word(_WIDTH, bottom + 24, "cycles by stall fields", size=10, align="right", colour=BESIDE)
    sheet.word(-120, 0, " ")
    names = {**{_pale(lane): colour for lane, colour in UNDER_WAY.items()}, **KINDS}
    return sheet.chart(names, None, gap=0)


def _joined(spans: Iterator[Span]) -> Iterator[Span]:
    """Yield the spans with overlapping ones merged: the picture shows that some are under way, not how many."""
    current: Span | None = None
    for span in sorted(spans, key=lambda span: span.begin):
        if current is not None and span.begin <= current.end:
            current = Span(span.kind, current.begin, max(current.end, span.end))
        else:
            if current is not None:
                yield current
            current = span
    if current is not None:
        yield current


def _pale(lane: str) -> str:
    return f"{lane}: under way"


def ticks(cycles: int) -> range:
    """Return round numbers from 0 to `cycles`, a few of them."""
    steps = (digit * 10**power for power in range(12) for digit in (1, 2, 5))
    return range(0, cycles + 1, next(step for step in steps if cycles <= _TICKS * step))


def _draw(subject: Subject) -> VegaChart:
    return pipeline_chart(timeline(executed_by(subject, 0), loop_code(subject).header))


DRAWING = Drawing(
    name="pipeline",
    place=64,
    title="Timeline of a warp: instructions issued, and what is under way",
    caption="The first warp of the first block as it was executed, up to three iterations of the main loop. Time is "
    "the sum of its stall fields in cycles (it may wait longer); pale bars go from a load, a copy or a product of "
    "warpgroups to the first instruction that waits for it.",
    applies=lambda subject: subject.on_gpu and bool(loop_code(subject).instructions),
    draw=_draw,
)
