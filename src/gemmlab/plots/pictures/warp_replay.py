"""Replay of a block's recorded steps with times: the warps of the block meet at mbarriers and at the block's barriers.

The warp that is the earliest executes its next instruction, which takes the cycles of its stall field. A wait ends when
the phase of its mbarrier has ended: at the latest arrival, or when the last of its copies is complete. A copy is
complete `COPY_CYCLES` after its issue. At a block's barrier all warps wait for the last one. The tensor core of a
partition executes the products of its warps one after the other; a warpgroup's multiplication by 64 x N takes N / 2
cycles whatever its type, since it always has 32 bytes of k.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from gemmlab.core.trace import MbarrierEvent
from gemmlab.plots.pictures.kinds import kind_of
from gemmlab.plots.pictures.pipeline import CLOSES, Span
from gemmlab.sass.instruction import Instruction

COPY_CYCLES = 700
"""Cycles from the issue of a copy to its completion. Assumed: between the latencies of L2 and of device memory."""
FOR_COPIES, FOR_ARRIVALS, FOR_BLOCK = "waits for copies", "waits for arrivals", "waits for the block"
FOR_PRODUCTS = "waits for its products"
_PARTITIONS = 4
_SHAPE = re.compile(r"64x(\d+)x\d+")
Phase = tuple[int, int]
"""Address of an mbarrier, and number of one of its phases."""
Meeting = tuple[str, int]
"""A barrier of the block as the operand of BAR names it, and how often the warp has used it before."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait of a warp at an mbarrier."""

    warp: int
    address: int
    span: Span


@dataclass(slots=True)
class Fill:
    """One use of a stage: a phase of the mbarrier that counts its bytes. Times are in cycles."""

    begin: int
    """Issue of the first copy."""
    complete: int = 0
    read: int | None = None
    """End of the first wait for it; `None` if nothing waits."""
    free: int | None = None
    """The time from which it may be filled again; `None` if unknown."""
    readers: set[int] = field(default_factory=set)
    """Warps that have waited for it and have not arrived since at an mbarrier that counts no bytes of copies."""


@dataclass(frozen=True, slots=True)
class _Step:
    instruction: Instruction
    events: tuple[MbarrierEvent, ...]
    meeting: Meeting | None
    """The meeting at which a BAR arrives; `None` for any other instruction."""


class WarpReplay:
    """The replay of one block. `run` executes it; `copied`, `spans`, `waits` and `fills` are its results."""

    def __init__(self, steps: Iterable[tuple[int, Instruction]], events: Sequence[MbarrierEvent], block: int) -> None:
        """Take the block's steps, (warp, instruction) in the order of a trace, and the events at its mbarriers.

        An arrival of another block of the cluster counts as made with the step after which it was recorded.
        """
        self.copied = {event.address for event in events if event.kind == "copy"}
        """Addresses of the mbarriers that count bytes of copies."""
        self.spans: dict[int, list[Span]] = defaultdict(list)
        """By warp, its consecutive spans."""
        self.waits: list[Wait] = []
        self.fills: dict[Phase, Fill] = {}
        self._block = block
        self._clocks: dict[int, int] = defaultdict(int)
        self._ends: dict[Phase, int] = {}
        self._last_pass: dict[int, int] = {}
        self._tensor: dict[int, int] = defaultdict(int)
        self._products: dict[int, list[int]] = defaultdict(list)
        self._met: dict[Meeting, int] = defaultdict(int)
        self._standing: dict[int, Meeting] = {}
        self._missing = Counter((event.address, event.phase) for event in events if event.kind != "pass")
        self._absent: Counter[Meeting] = Counter()
        self._queues = self._queued(steps, events)

    def _queued(
        self, steps: Iterable[tuple[int, Instruction]], events: Sequence[MbarrierEvent]
    ) -> dict[int, deque[_Step]]:
        """Return the steps of each warp, without waits that did not end; count the arrivals at each meeting."""
        by_step: dict[int, list[MbarrierEvent]] = defaultdict(list)
        for event in events:
            by_step[event.order].append(event)
        queues: dict[int, deque[_Step]] = defaultdict(deque)
        uses: Counter[tuple[int, str]] = Counter()
        for order, (warp, instruction) in enumerate(steps):
            mine = tuple(by_step[order])
            tries = instruction.opcode == "SYNCS" and "TRYWAIT" in instruction.modifiers
            if tries and not any(event.kind == "pass" and event.block == self._block for event in mine):
                # The warp executes it again. Arrivals of other blocks that were recorded here have no time: left out.
                self._missing.subtract((event.address, event.phase) for event in mine if event.kind != "pass")
                continue
            meeting = None
            if instruction.opcode == "BAR":
                name = instruction.operands[0].text if instruction.operands else ""
                meeting = name, uses[warp, name]
                uses[warp, name] += 1
                self._absent[meeting] += 1
            queues[warp].append(_Step(instruction, mine, meeting))
        return queues

    def run(self) -> None:
        """Execute all steps, the earliest warp first."""
        ready = [(0, warp) for warp in self._queues]
        heapify(ready)
        parked: list[int] = []
        while ready or parked:
            # Only a trace with gaps leaves warps that wait for nothing which is still to come.
            _, warp = heappop(ready) if ready else (0, parked.pop())
            step = self._queues[warp].popleft()
            self._execute(warp, step)
            for other in [each for each in (*parked, warp) if self._queues[each]]:
                if self._may_go(other):
                    heappush(ready, (self._clocks[other], other))
                    if other in parked:
                        parked.remove(other)
                elif other not in parked:
                    parked.append(other)

    def _may_go(self, warp: int) -> bool:
        """Return whether all that the warp's next step waits for has been executed; let a warp leave a barrier."""
        step = self._queues[warp][0]
        if meeting := self._standing.get(warp):
            if self._absent[meeting] > 0:
                return False
            del self._standing[warp]
            self._spend(warp, FOR_BLOCK, self._met[meeting])
        return all(
            self._missing[event.address, event.phase] <= 0 for event in step.events
            if event.kind == "pass" and event.block == self._block
        )  # fmt: skip

    def _execute(self, warp: int, step: _Step) -> None:
        instruction = step.instruction
        for event in step.events:
            if event.kind == "pass" and event.block == self._block:
                self._pass(event)
        self._spend(warp, kind_of(instruction), self._clocks[warp] + max(1, instruction.control.stall))
        now = self._clocks[warp]
        for event in step.events:
            if event.kind != "pass":
                self._missing[event.address, event.phase] -= 1
                self._note(event, now)
        if step.meeting is not None:
            self._absent[step.meeting] -= 1
            self._met[step.meeting] = max(self._met[step.meeting], now)
            if "ARV" not in instruction.modifiers:
                self._standing[warp] = step.meeting
        elif instruction.opcode == "HGMMA":
            self._multiply(warp, instruction)
        elif instruction.opcode == "WARPGROUP" and "DEPBAR" in instruction.modifiers:
            left = next((operand.value for operand in instruction.operands if operand.kind == "imm"), 0)
            while len(self._products[warp]) > left:
                self._spend(warp, FOR_PRODUCTS, self._products[warp].pop(0))

    def _spend(self, warp: int, kind: str, until: int) -> None:
        """Let a warp do something of one kind until a time."""
        begin, spans = self._clocks[warp], self.spans[warp]
        if until > begin:
            joins = bool(spans) and (spans[-1].kind, spans[-1].end) == (kind, begin)
            spans.append(Span(kind, spans.pop().begin if joins else begin, until))
            self._clocks[warp] = until

    def _pass(self, event: MbarrierEvent) -> None:
        """Let a warp wait for the end of a phase."""
        phase, warp = (event.address, event.phase), event.warp
        begin, end = self._clocks[warp], self._ends.get((event.address, event.phase), 0)
        if end > begin:
            kind = FOR_COPIES if event.address in self.copied else FOR_ARRIVALS
            self._spend(warp, kind, end)
            self.waits.append(Wait(warp, event.address, Span(kind, begin, end)))
        now = self._last_pass[warp] = self._clocks[warp]
        if fill := self.fills.get(phase):
            fill.read = now if fill.read is None else min(fill.read, now)
            fill.readers.add(warp)

    def _note(self, event: MbarrierEvent, now: int) -> None:
        """Take an arrival or a copy into account that was made by the time `now`."""
        phase = event.address, event.phase
        if event.kind == "arrive":
            self._ends[phase] = max(self._ends.get(phase, 0), now)
            if event.address not in self.copied and event.block == self._block:
                for fill in self.fills.values():
                    if event.warp in fill.readers:
                        fill.readers.discard(event.warp)
                        fill.free = now if fill.free is None else max(fill.free, now)
            return
        complete = now + COPY_CYCLES
        self._ends[phase] = max(self._ends.get(phase, 0), complete)
        if phase not in self.fills:
            self.fills[phase] = Fill(now)
            before = self.fills.get((event.address, event.phase - 1))
            if before is not None and event.warp in self._last_pass:
                before.free = self._last_pass[event.warp]
        self.fills[phase].complete = max(self.fills[phase].complete, complete)

    def _multiply(self, warp: int, instruction: Instruction) -> None:
        """Give a warp's part of a warpgroup's multiplication to the tensor core of its partition."""
        shape = next((found for name in instruction.modifiers if (found := _SHAPE.fullmatch(name))), None)
        partition = warp % _PARTITIONS
        end = max(self._tensor[partition], self._clocks[warp]) + (int(shape[1]) // 2 if shape else 0)
        self._tensor[partition] = end
        if CLOSES in instruction.text:
            self._products[warp].append(end)
