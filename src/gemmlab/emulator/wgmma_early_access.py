"""Registers of warpgroup multiplications that are accessed while these are in flight, or written after the last fence.

They are found after the run by an analysis of the machine code that ran, so that nothing is compared during the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gemmlab.sass.blocks import successors
from gemmlab.sass.instruction import Instruction, SassFunction
from gemmlab.sass.vector_registers import gmma_registers, registers_of

OLDEST = 32
"""Largest number of groups closed since an issue that is counted; more count as this many."""
Ages = Mapping[int, int]
"""Index of a multiplication that may be in flight -> groups closed since its issue; 0 while its own group is open."""
Writes = Mapping[int, int]
"""Register written since the last fence -> index of the instruction that wrote it."""


@dataclass(frozen=True, slots=True)
class Touch:
    """An early access to a multiplication's registers: indices of the accessing instruction and the multiplication."""

    site: int
    multiplication: int
    fence: bool = False
    """True if the fault is a missing fence: the instruction writes a register of the multiplication before it is
    issued, and no fence is in between. False if the instruction accesses registers of a multiplication in flight.
    """


@dataclass(frozen=True, slots=True)
class _State:
    ages: Ages
    writes: Writes

    def joined(self, other: _State) -> _State:
        """Return the state where two paths meet: everything that is true on either of them."""
        ages = dict(self.ages)
        for site, age in other.ages.items():
            ages[site] = min(age, ages.get(site, age))
        return _State(ages, {**other.writes, **self.writes})


def touches(code: Sequence[Instruction], ran: Sequence[bool]) -> list[Touch]:
    """Return the early accesses in the order of the code; `ran` is true for instructions that were executed."""
    function = SassFunction("", tuple(code), {})
    before: dict[int, _State] = {0: _State({}, {})}
    waiting = [0]
    while waiting:
        place = waiting.pop()
        after = _after(code[place], place, before[place])
        for to in successors(function, code[place]):
            if not 0 <= to < len(code) or not ran[to]:
                continue
            known = before.get(to)
            new = after if known is None else known.joined(after)
            if new != known:
                before[to] = new
                waiting.append(to)
    found = [touch for place in sorted(before) for touch in _found(code, place, before[place])]
    return list({(touch.site, touch.multiplication): touch for touch in found}.values())


def _after(instruction: Instruction, place: int, state: _State) -> _State:
    spans = gmma_registers(instruction)
    if spans is not None:
        closes = any(operand.kind == "scoreboard" for operand in instruction.operands)
        ages = {**state.ages, place: 0} if spans[0] else dict(state.ages)
        if closes:
            ages = {site: min(age + 1, OLDEST) for site, age in ages.items()}
        writes = {register: by for register, by in state.writes.items() if register not in spans[0]}
        return _State(ages, writes)
    if instruction.opcode == "WARPGROUP":
        if "ARRIVE" in instruction.modifiers:
            return _State(state.ages, {})
        left = next((operand.value for operand in instruction.operands if operand.kind == "imm"), 0)
        return _State({site: age for site, age in state.ages.items() if age <= left}, state.writes)
    written = dict.fromkeys(registers_of(instruction)[1], place)
    return _State(state.ages, {**state.writes, **written}) if written else state


def _found(code: Sequence[Instruction], place: int, state: _State) -> Iterator[Touch]:
    instruction = code[place]
    spans = gmma_registers(instruction)
    if spans is None:
        read, written = registers_of(instruction)
    else:
        read, written = frozenset(spans[1]), frozenset()
        late = [state.writes[register] for span in spans for register in span if register in state.writes]
        if late:
            yield Touch(max(late), place, fence=True)
    for site in state.ages:
        target, left, _addend = gmma_registers(code[site]) or (range(0), range(0), range(0))
        overlaps = spans is not None and spans[0] != target and set(spans[0]) & set(target)
        if overlaps or not (read | written).isdisjoint(target) or not written.isdisjoint(left):
            yield Touch(place, site)
