"""Check of control codes: every result is complete before it is read or overwritten.

The hardware does not check this. An instruction of fixed latency needs enough stall cycles after it. Any other one
needs a dependency barrier that later instructions wait for, and a read barrier if it reads registers after issue. A
register with a reuse flag must not be written before the next instruction that reads it in the same operand place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gemmlab.sass.blocks import FlowGraph, flow_graph
from gemmlab.sass.cells import PREDICATE, UNIFORM, UNIFORM_PREDICATE
from gemmlab.sass.checking.flow import meetings
from gemmlab.sass.checking.latencies import TIGHT, Latencies, latencies
from gemmlab.sass.checking.reuse import broken_reuse
from gemmlab.sass.checking.steps import BARRIER, NO_BARRIER, Step, steps_of
from gemmlab.sass.checking.tracker import SET_CYCLES, Meeting, Relation
from gemmlab.sass.instruction import Instruction, SassFunction

Fault = Literal["too early", "no barrier", "not waited for", "waited for too early", "overwritten too early", "reuse"]
Distances = Mapping[tuple[int, int, Relation], int]
"""(index of the producer, index of the consumer, relation) -> least cycles between their issues."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault in control codes: its kind, the two instructions, their register and the reason."""

    fault: Fault
    function: str
    producer: Instruction
    consumer: Instruction
    register: str
    reason: str
    barriers: frozenset[int] = frozenset()
    """Numbers of dependency barriers: a wait for any one of them, not too early, removes the fault.

    Empty if no wait for a barrier removes it.
    """
    certain: bool = True
    """False if the two are closer than the latency of their kinds, but no closer than `Latency.least`.

    The code may then be correct.
    """

    def __str__(self) -> str:
        return (
            f"{self.function}: {self.consumer.address:#06x} {self.consumer.text}: {self.register} of "
            f"{self.producer.address:#06x} {self.producer.text}: {self.reason}"
        )


def check_function(
    function: SassFunction, arch: str, compiled: Distances | None = None, *, partly: bool = False
) -> tuple[Finding, ...]:
    """Return the faults in a function's control codes, sorted by the address of the later instruction.

    `compiled` has the distances in the compiler's code, by indices into this function. A pair that stays as far apart
    is not a fault, even if a longer latency is recorded. A pair without a recorded latency must stay as far apart, or
    `TIGHT` cycles if it has no distance. Without `compiled`, such a pair is not checked.

    With `partly`, the stalls and waits of asynchronous instructions count, but what these read and write is not
    checked.

    Raises `UnknownAccessError` if the function has instructions whose registers are not known (asynchronous ones, if
    not `partly`), and `UsageError` if there are no latencies for the architecture.
    """
    steps, graph, known = steps_of(function, partly=partly), flow_graph(function), latencies(arch)
    # A certain finding hides an uncertain one of the same two instructions.
    raised = sorted(_early(function, graph, steps, known, compiled), key=lambda finding: finding.certain)
    found = {
        (finding.fault, finding.producer.address, finding.consumer.address, finding.register): finding
        for finding in (*raised, *_reuse(function, graph))
    }
    return tuple(sorted(found.values(), key=lambda finding: (finding.consumer.address, finding.producer.address)))


def distances(function: SassFunction) -> Distances:
    """Return the least cycles between each instruction of fixed latency and those that access its pending result."""
    found: dict[tuple[int, int, Relation], int] = {}
    for meeting in meetings(flow_graph(function), steps_of(function)):
        if meeting.age is not None:
            key = (meeting.producer, meeting.consumer, meeting.relation)
            found[key] = min(meeting.age, found.get(key, meeting.age))
    return found


def unrecorded_pairs(function: SassFunction, arch: str) -> int:
    """Return the number of pairs of instructions without a recorded latency, or closer than it.

    Only pairs count in which one instruction accesses the pending result of another, which has a fixed latency.

    In a compiler's code such pairs show gaps of the record, not faults of the code.
    """
    steps, known = steps_of(function), latencies(arch)
    pairs = set[tuple[int, int]]()
    for meeting in meetings(flow_graph(function), steps):
        if meeting.age is not None:
            latency = known.of(meeting, steps[meeting.producer], steps[meeting.consumer])
            if latency is None or meeting.age < latency.cycles:
                pairs.add((meeting.producer, meeting.consumer))
    return len(pairs)


def without_codes(function: SassFunction) -> bool:
    """Return whether no instruction states a stall or a barrier, as in code that is compiled for a debugger (`-G`)."""
    return all((i.control.stall, i.control.write_barrier, i.control.read_barrier) == (0, NO_BARRIER, NO_BARRIER)
               for i in function.instructions)  # fmt: skip


def unjudged(function: SassFunction, arch: str) -> tuple[str, ...]:
    """Return the kinds of fixed-latency instructions without a recorded latency.

    `check_function` without `compiled` ignores them.
    """
    steps, known = steps_of(function, partly=True), latencies(arch)
    recorded = {row[0] for row in known.rows}
    kinds = {step.kind for step in steps if step.queue is None and step.writes}
    return tuple(sorted(kinds - recorded))


def _early(
    function: SassFunction, graph: FlowGraph, steps: Sequence[Step], known: Latencies, compiled: Distances | None
) -> Iterator[Finding]:
    for meeting in meetings(graph, steps):
        verdict = fault_of(meeting, steps, known, compiled)
        if verdict is not None:
            fault, reason = verdict
            producer, consumer = (steps[n].instruction for n in (meeting.producer, meeting.consumer))
            latency = known.of(meeting, steps[meeting.producer], steps[meeting.consumer])
            yield Finding(
                fault, function.name, producer, consumer, register_name(meeting.cell), reason, meeting.barriers,
                certain=meeting.age is None or latency is None or meeting.age < latency.least,
            )  # fmt: skip


def fault_of(
    meeting: Meeting, steps: Sequence[Step], known: Latencies, compiled: Distances | None = None
) -> tuple[Fault, str] | None:
    """Return (fault, reason) of a meeting; `None` if there is no fault. `compiled` is as in `check_function`.

    A meeting with a result without a fixed latency is always a fault: a wait would have removed the result.
    """
    if meeting.age is None:
        barriers = ", ".join(f"SB{barrier}" for barrier in sorted(meeting.barriers))
        if any(steps[meeting.consumer].control.wait_mask >> barrier & 1 for barrier in meeting.barriers):
            return (
                "waited for too early",
                f"the wait for {barriers} comes less than {SET_CYCLES} cycles after it is set",
            )
        if meeting.operand:
            why = f"read late, and {barriers} is not waited for" if barriers else "read late, and no barrier guards it"
            return "overwritten too early", why
        return (
            ("not waited for", f"{barriers} is not waited for") if barriers else ("no barrier", "no barrier guards it")
        )
    if meeting.cell == BARRIER and meeting.relation == "overwrite":
        # Barriers of a block pass in order.
        return None
    latency = known.of(meeting, steps[meeting.producer], steps[meeting.consumer])
    left = None if compiled is None else compiled.get((meeting.producer, meeting.consumer, meeting.relation))
    if latency is not None:
        least, source = latency.cycles, latency.source
    elif compiled is not None:
        # A pair that was never close in the compiler's code has no distance there; it must stay `TIGHT` cycles apart.
        least, source = TIGHT if left is None else left, "no latency is recorded, and the compiler left more"
    else:
        # `unjudged` reports such kinds.
        return None
    if meeting.age >= (least if left is None else min(least, left)):
        return None
    verb = "read" if meeting.relation == "read" else "overwritten"
    return "too early", f"{verb} after {meeting.age} cycles; {source}"


def _reuse(function: SassFunction, graph: FlowGraph) -> Iterator[Finding]:
    for earlier, later, register in broken_reuse(graph):
        yield Finding("reuse", function.name, earlier, later, f"R{register}", "its reuse flag holds the old value")


def register_name(cell: int) -> str:
    """Return the name of a cell: R4, UR4, P4, UP4 or `the barrier`."""
    if cell == BARRIER:
        return "the barrier"
    if cell < UNIFORM:
        return f"R{cell}"
    if cell < PREDICATE:
        return f"UR{cell - UNIFORM}"
    return f"P{cell - PREDICATE}" if cell < UNIFORM_PREDICATE else f"UP{cell - UNIFORM_PREDICATE}"
