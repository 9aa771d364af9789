"""Check of control codes: every result has come before it is read or overwritten.

The hardware does not check. An instruction of fixed latency is followed by enough stall cycles, any other one has a
dependency barrier that later instructions wait for, and registers that are read late have a read barrier. A reuse flag
promises that the next instruction with a register in the same place and bank has the same one, or reads its own.
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
from gemmlab.sass.checking.steps import Step, steps_of
from gemmlab.sass.checking.tracker import Meeting, Relation
from gemmlab.sass.instruction import Instruction, SassFunction

Fault = Literal["too early", "no barrier", "not waited for", "overwritten too early", "reuse"]
Distances = Mapping[tuple[int, int, Relation], int]
"""The least cycles between two instructions, by their indices and what the later one does to the result."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: what is wrong, where, and the rule that it breaks."""

    fault: Fault
    function: str
    producer: Instruction
    consumer: Instruction
    register: str
    reason: str
    barriers: frozenset[int] = frozenset()
    """Barriers any of which would have to be waited for; empty for other faults."""
    certain: bool = True
    """False if the two are closer than recorded, but not closer than other pairs with this producer."""

    def __str__(self) -> str:
        return (
            f"{self.function}: {self.consumer.address:#06x} {self.consumer.text}: {self.register} of "
            f"{self.producer.address:#06x} {self.producer.text}: {self.reason}"
        )


def check_function(function: SassFunction, arch: str, compiled: Distances | None = None) -> tuple[Finding, ...]:
    """Return what is wrong with the control codes of a function, by address of the later instruction.

    `compiled` has the distances that a compiler left: a pair that stays as far apart is not too early, whatever is
    recorded, and one of unknown latency must stay so.

    Raises `UnknownAccessError` if it has instructions whose registers are not known (asynchronous ones), and
    `UsageError` if there are no latencies for the architecture.
    """
    steps, graph, known = steps_of(function), flow_graph(function), latencies(arch)
    found = {
        (finding.fault, finding.producer.address, finding.consumer.address, finding.register): finding
        for finding in (*_early(function, graph, steps, known, compiled), *_reuse(function, graph))
    }
    return tuple(sorted(found.values(), key=lambda finding: (finding.consumer.address, finding.producer.address)))


def distances(function: SassFunction) -> Distances:
    """Return how far apart a function's code leaves each pair that meets at a result of fixed latency."""
    found: dict[tuple[int, int, Relation], int] = {}
    for meeting in meetings(flow_graph(function), steps_of(function)):
        if meeting.age is not None:
            key = (meeting.producer, meeting.consumer, meeting.relation)
            found[key] = min(meeting.age, found.get(key, meeting.age))
    return found


def unrecorded_pairs(function: SassFunction, arch: str) -> int:
    """Return the number of pairs of instructions that have no recorded latency, or a longer one than the code leaves.

    In a compiler's code these say something of the record, not of the code.
    """
    steps, known = steps_of(function), latencies(arch)
    pairs = set[tuple[int, int]]()
    for meeting in meetings(flow_graph(function), steps):
        if meeting.age is not None:
            latency = known.of(meeting, steps[meeting.producer], steps[meeting.consumer])
            if latency is None or meeting.age < latency.cycles:
                pairs.add((meeting.producer, meeting.consumer))
    return len(pairs)


def unjudged(function: SassFunction, arch: str) -> tuple[str, ...]:
    """Return the kinds of instructions whose results are not judged, because no latency of them is recorded."""
    steps, known = steps_of(function), latencies(arch)
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
    """Return the fault of a meeting and its reason; `None` if the result has come by then (`check_function`)."""
    if meeting.age is None:
        barriers = ", ".join(f"SB{barrier}" for barrier in sorted(meeting.barriers))
        if meeting.operand:
            why = f"read late, and {barriers} is not waited for" if barriers else "read late, and no barrier guards it"
            return "overwritten too early", why
        return (
            ("not waited for", f"{barriers} is not waited for") if barriers else ("no barrier", "no barrier guards it")
        )
    latency = known.of(meeting, steps[meeting.producer], steps[meeting.consumer])
    left = None if compiled is None else compiled.get((meeting.producer, meeting.consumer, meeting.relation))
    if latency is not None:
        least, source = latency.cycles, latency.source
    elif compiled is not None:
        # Nothing is known but what the compiler left; a pair that met nowhere near stays apart.
        least, source = TIGHT if left is None else left, "no latency is recorded, and the compiler left more"
    else:
        # `unjudged` names it.
        return None
    if meeting.age >= (least if left is None else min(least, left)):
        return None
    verb = "read" if meeting.relation == "read" else "overwritten"
    return "too early", f"{verb} after {meeting.age} cycles; {source}"


def _reuse(function: SassFunction, graph: FlowGraph) -> Iterator[Finding]:
    for earlier, later, register in broken_reuse(graph):
        yield Finding("reuse", function.name, earlier, later, f"R{register}", "its reuse flag holds the old value")


def register_name(cell: int) -> str:
    """Return the name of a cell: R4, UR4, P4 or UP4."""
    if cell < UNIFORM:
        return f"R{cell}"
    if cell < PREDICATE:
        return f"UR{cell - UNIFORM}"
    return f"P{cell - PREDICATE}" if cell < UNIFORM_PREDICATE else f"UP{cell - UNIFORM_PREDICATE}"
