"""Pending results along one path through code, and the accesses to them.

A result is pending until it can be read; an operand is pending while an issued instruction may still have to read it.
Instructions are named by their index in the function's steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gemmlab.sass.cells import PREDICATE
from gemmlab.sass.checking.steps import NO_BARRIER, Step
from gemmlab.sass.register_accesses import Access

SET_CYCLES = 2
"""Cycles from the issue of an instruction that sets a dependency barrier until a wait for the barrier sees it.

Measured on an H200 (`makers/sass_mutations.py`): a wait that issues one cycle after that instruction lets the warp go
on with the old value.
"""
HORIZON = 64
"""Cycles after which a result of fixed latency is surely complete."""
Relation = Literal["read", "overwrite"]
Key = tuple[int, int]
"""(index of the producer, cell)."""
Barriers = frozenset[int]


@dataclass(frozen=True, slots=True)
class Meeting:
    """An access to a register while an earlier instruction, the producer, may still have to write or read it."""

    producer: int
    consumer: int
    cell: int
    relation: Relation
    """`"read"`: the consumer reads the cell; `"overwrite"`: it writes the cell."""
    access: Access | None
    """The consumer's access; `None` if it overwrites."""
    age: int | None
    """Cycles since the producer's issue; `None` if the producer has no fixed latency."""
    barriers: Barriers = frozenset()
    """Dependency barriers that protect the register: the consumer must wait for one of them, no matter which. It is
    empty if none protects the register.
    """
    operand: bool = False
    """True if the producer may still have to read the register; false if it has to write it."""


@dataclass(slots=True)
class State:
    """Pending results and operands at one place in the code."""

    fixed: dict[Key, int] = field(default_factory=dict)
    """Result of fixed latency -> the time of its producer's issue, in cycles on the tracker's clock."""
    late: dict[Key, Barriers] = field(default_factory=dict)
    """Result without a fixed latency -> barriers; a wait for any one of them completes it."""
    operands: dict[Key, Barriers] = field(default_factory=dict)
    """Register that the producer reads after issue -> barriers, as in `late`."""
    fresh: dict[int, tuple[int, frozenset[Key]]] = field(default_factory=dict)
    """Dependency barrier -> (time of its latest setting, the results and operands that no earlier setting protects).

    The time is in cycles on the tracker's clock.
    """
    changed: set[int] = field(default_factory=set)
    """Producers whose guard may have been written since they were issued."""

    def copy(self) -> State:
        return State(dict(self.fixed), dict(self.late), dict(self.operands), dict(self.fresh), set(self.changed))

    def join(self, other: State) -> bool:
        """Merge another path's state into this one; return whether this one changed.

        What is pending in either stays. A result of fixed latency keeps its latest issue. Any other entry keeps the
        barriers that both states have for it, or those of the only state that has the entry.
        """
        different = False
        for key, time in other.fixed.items():
            if time > self.fixed.get(key, -HORIZON - 1):
                self.fixed[key] = time
                different = True
        for mine, theirs in ((self.late, other.late), (self.operands, other.operands)):
            for key, barriers in theirs.items():
                old = mine.get(key)
                both = barriers if old is None else old & barriers
                if both != old:
                    mine[key] = both
                    different = True
        for barrier, (time, keys) in other.fresh.items():
            set_at, own = self.fresh.get(barrier, (-HORIZON, frozenset[Key]()))
            if (max(time, set_at), keys | own) != (set_at, own):
                self.fresh[barrier] = max(time, set_at), keys | own
                different = True
        if not other.changed <= self.changed:
            self.changed |= other.changed
            different = True
        return different


class Tracker:
    """The pending results along one path, updated in `state` at each instruction. `now` is the time in cycles."""

    def __init__(self, steps: Sequence[Step], state: State) -> None:
        self.steps, self.state, self.now = steps, state, 0
        self._cells: dict[int, set[int]] = {}
        for producer, cell in (*state.fixed, *state.late, *state.operands):
            self._cells.setdefault(cell, set()).add(producer)

    def run(self, number: int) -> Iterator[Meeting]:
        """Let instruction `number`, the next on the path, wait for its barriers, yield its meetings, and issue it."""
        self.wait(number)
        yield from self.meet(number)
        self.issue(number)

    def wait(self, number: int) -> None:
        """Remove from the state what is complete once instruction `number` has waited for its barriers."""
        _wait(self.steps, self.steps[number], self.state, self.now)

    def meet(self, number: int) -> Iterator[Meeting]:
        """Yield a `Meeting` for each access of instruction `number` to a register that is pending now.

        It is called after `wait` and before `issue`, which replaces what is pending for the registers written.
        """
        step = self.steps[number]
        for cell, access in step.reads:
            for producer in self._cells.get(cell, ()):
                yield from _met(self.steps, self.state, producer, number, cell, access, self.now)
        for cell in step.writes:
            for producer in self._cells.get(cell, ()):
                yield from _met(self.steps, self.state, producer, number, cell, None, self.now)

    def issue(self, number: int) -> None:
        """Add an instruction's results and late-read operands to the state, and advance the time by its stall.

        An instruction without a guard removes what was pending for the cells that it writes.
        """
        _issue(self.steps, number, self.state, self._cells, self.now)
        self.skip(number)

    def skip(self, number: int) -> None:
        """Advance the time by an instruction's stall, in cycles."""
        self.now += self.steps[number].control.stall

    def finish(self) -> None:
        """Set the current time to 0, make times of issue relative to it, and drop results that are surely complete."""
        state, now = self.state, self.now
        state.fixed = {key: time - now for key, time in state.fixed.items() if now - time < HORIZON}
        state.fresh = {
            barrier: (time - now, keys) for barrier, (time, keys) in state.fresh.items() if now - time < SET_CYCLES
        }
        state.changed &= {producer for producer, _ in (*state.fixed, *state.late, *state.operands)}
        self.now = 0


def _met(
    steps: Sequence[Step], state: State, producer: int, number: int, cell: int, access: Access | None, now: int
) -> Iterator[Meeting]:
    step, earlier = steps[number], steps[producer]
    if _apart(earlier, step) and producer not in state.changed:
        return
    key: Key = (producer, cell)
    relation: Relation = "read" if access is not None else "overwrite"
    if key in state.fixed:
        yield Meeting(producer, number, cell, relation, access, now - state.fixed[key])
    if access is None and earlier.queue is not None and earlier.queue == step.queue and earlier.in_order:
        # An instruction of the same queue writes after the earlier one.
        return
    if key in state.late:
        yield Meeting(producer, number, cell, relation, access, None, state.late[key])
    if access is None and key in state.operands and (earlier.reading != step.reading or step.queue is None):
        yield Meeting(producer, number, cell, relation, access, None, state.operands[key], operand=True)


def _apart(earlier: Step, later: Step) -> bool:
    """Return whether two steps have opposite guards, so that a lane runs only one of them."""
    return earlier.guard is not None and later.guard == (earlier.guard[0], not earlier.guard[1])


def _wait(steps: Sequence[Step], step: Step, state: State, now: int) -> None:
    mask = step.control.wait_mask
    if step.instruction.opcode == "DEPBAR":
        mask |= _depbar(steps, step, state)
    if not mask:
        return
    unseen = {barrier: keys for barrier, (time, keys) in state.fresh.items() if now - time < SET_CYCLES}
    for table in (state.late, state.operands):
        for key in [key for key, barriers in table.items() if _completes(mask, key, barriers, unseen)]:
            del table[key]


def _completes(mask: int, key: Key, barriers: Barriers, unseen: Mapping[int, frozenset[Key]]) -> bool:
    """Return whether a wait for the barriers of `mask` completes the result or operand `key`.

    `barriers` are those that protect it. `unseen` maps each barrier that was just set to what a wait for it does not
    complete yet.
    """
    return any(mask >> barrier & 1 and key not in unseen.get(barrier, ()) for barrier in barriers)


def _depbar(steps: Sequence[Step], step: Step, state: State) -> int:
    """Return a mask of the barriers that `DEPBAR.LE SB0, 0x0` waits for.

    With a number n above 0 instead of `0x0`, `DEPBAR` waits until at most n instructions are pending at the barrier. In
    a queue with results in order, those are the last n that set it. The results and operands of the others, and of what
    they cover, are removed from the state here. Other queues (copies to shared memory) have no register results at the
    barrier. The mask is then 0.
    """
    barriers = [operand.index for operand in step.instruction.operands if operand.kind == "scoreboard"]
    most = next((operand.value for operand in step.instruction.operands if operand.kind == "imm"), 0)
    if not most:
        return sum(1 << barrier for barrier in barriers)
    for barrier in barriers:
        on_it = {key[0] for key, covers in state.late.items() if barrier in covers and steps[key[0]].in_order}
        setting = sorted(producer for producer in on_it if steps[producer].control.write_barrier == barrier)
        done = {producer for producer in on_it if setting[:-most] and producer <= setting[-most - 1]}
        for table in (state.late, state.operands):
            for key in [key for key in table if key[0] in done]:
                del table[key]
    return 0


def _issue(steps: Sequence[Step], number: int, state: State, cells: dict[int, set[int]], now: int) -> None:
    """Add an instruction's results, and the operands that it reads late, to the state.

    An instruction without a guard removes what was pending for the cells that it writes.
    """
    step = steps[number]
    written = set(step.writes)
    if any(cell >= PREDICATE for cell in written):
        for producer, _ in (*state.fixed, *state.late, *state.operands):
            guard = steps[producer].guard
            if guard is not None and guard[0] in written:
                state.changed.add(producer)
    # After an unconditional write only its own result counts; `meet` has reported a write that is too early.
    if step.guard is None and not step.instruction.is_idle:
        for cell in written:
            for producer in cells.pop(cell, ()):
                for table in (state.fixed, state.late, state.operands):
                    table.pop((producer, cell), None)
    control = step.control
    if step.queue is None:
        for cell in step.writes:
            state.fixed[number, cell] = now
            cells.setdefault(cell, set()).add(number)
        return
    if step.instruction.is_idle:
        return
    result = frozenset({control.write_barrier} - {NO_BARRIER})
    read = result | (frozenset({control.read_barrier}) - {NO_BARRIER})
    before = {barrier: _guarded(state, barrier) for barrier in read}
    _cover(steps, step, state, result, read)
    for cell in step.writes:
        # A generic atomic's predicate says in which memory the address lies, and is there when the operands are read.
        state.late[number, cell] = read if step.instruction.opcode == "ATOM" and cell >= PREDICATE else result
        cells.setdefault(cell, set()).add(number)
    for cell in step.late_reads:
        state.operands[number, cell] = read
        cells.setdefault(cell, set()).add(number)
    state.changed.discard(number)
    for barrier, keys in before.items():
        own = frozenset(key for key in _guarded(state, barrier) if key[0] == number)
        state.fresh[barrier] = now, own | _guarded(state, barrier) - keys


def _guarded(state: State, barrier: int) -> frozenset[Key]:
    """Return the results and operands that a wait for a barrier completes."""
    return frozenset(key for table in (state.late, state.operands) for key, has in table.items() if barrier in has)


def _cover(steps: Sequence[Step], step: Step, state: State, result: Barriers, read: Barriers) -> None:
    """Add the barriers of instruction `step` to those that guard earlier instructions in its queue.

    These complete before it, so a wait for one of its barriers completes them as well.
    """
    if not read:
        return
    for key in state.operands:
        if steps[key[0]].reading == step.reading:
            state.operands[key] |= read
    if result and step.in_order:
        for key in state.late:
            if steps[key[0]].queue == step.queue:
                state.late[key] |= result
