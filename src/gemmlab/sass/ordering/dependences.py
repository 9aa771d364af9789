"""Dependences between instructions of a block: pairs whose order must stay."""

from __future__ import annotations

from collections.abc import Sequence

from gemmlab.sass.checking.steps import Step
from gemmlab.sass.checking.tracker import State, Tracker

_ORDERED = frozenset({
    "BAR", "DEPBAR", "LDGDEPBAR", "MEMBAR", "ERRBAR", "CCTL", "BSSY", "BSYNC", "BREAK", "WARPSYNC", "BRA", "EXIT",
    "CALL", "RET", "NANOSLEEP", "YIELD", "BMOV", "VOTE", "VOTEU", "NOP", "R2UR", "S2UR", "S2R", "CS2R",
})  # fmt: skip
"""Opcodes that must stay in order with memory accesses, whether they have a queue (`sass.checking.steps`) or not."""


def is_ordered(step: Step) -> bool:
    """Return whether an instruction is one of those that must keep their order among each other.

    These are memory accesses and all other instructions with a queue, and those in `_ORDERED`: barriers, branches,
    votes, moves from special registers and others.
    """
    return step.queue is not None or step.instruction.opcode in _ORDERED


def predecessors(steps: Sequence[Step]) -> list[set[int]]:
    """Return, for each instruction of a block, the indices of earlier ones that it must stay behind.

    The dependency barrier of one instruction may also guard results of earlier instructions in its queue, if the queue
    completes results in order. An access to such a result stays behind the instruction with the barrier. So does a
    write to a register that an earlier instruction of the queue reads after issue.

    Dependences that follow from others may be left out. The last instruction stays last.
    """
    found: list[set[int]] = [set() for _ in steps]
    writer: dict[int, list[int]] = {}
    readers: dict[int, list[int]] = {}
    ordered: int | None = None
    tracker = Tracker(steps, State())
    for number, step in enumerate(steps):
        before = found[number]
        for cell, _ in step.reads:
            before.update(writer.get(cell, ()))
        for cell in step.writes:
            before.update(writer.get(cell, ()))
            before.update(readers.get(cell, ()))
        if is_ordered(step):
            if ordered is not None:
                before.add(ordered)
            ordered = number
        for cell, _ in step.reads:
            readers.setdefault(cell, []).append(number)
        for cell in step.writes:
            # A predicated write may leave the older value, so readers still depend on older writers.
            writer[cell] = [number] if step.guard is None else [*writer.get(cell, ()), number]
            readers[cell] = []
        results, operands = _guarded(tracker, number)
        for cell in results:
            writer.setdefault(cell, []).append(number)
        for cell in operands:
            readers.setdefault(cell, []).append(number)
        before.discard(number)
    if steps:
        found[-1].update(range(len(steps) - 1))
    return found


def _guarded(tracker: Tracker, number: int) -> tuple[set[int], set[int]]:
    """Issue an instruction in `tracker`; return the cells that its dependency barriers are the first to guard.

    The first set has the cells of earlier results, the second those of operands that earlier instructions read late.
    """
    tables = (tracker.state.late, tracker.state.operands)
    unguarded = [{key for key, barriers in table.items() if not barriers} for table in tables]
    tracker.issue(number)
    results, operands = (
        {key[1] for key in keys if table.get(key)} for keys, table in zip(unguarded, tables, strict=True)
    )
    return results, operands
