"""Places of everything but FFMAs and loads of fragments: integer work where a step begins, copies between FFMAs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gemmlab.core.errors import UsageError
from gemmlab.sass.instruction import Instruction
from peak_loop.compiled import CompiledLoop, touched
from peak_loop.registers import Registers
from peak_loop.words import control, renamed

STEP = 128
"""FFMAs of a step."""
GROUP, COPIES = 0, 1
"""Barriers of the group of copies, and of the last copy's operands."""
EVEN, ODD, EVEN_REST, ODD_REST = 2, 3, 4, 5
"""Barriers of the fragments of even and odd steps; `_REST`: of the last load, if they are waited for in halves."""
_SIZE_OF_CROWD = 12
Keep = Callable[..., int]


@dataclass(slots=True)
class Places:
    """Words by the number of the FFMA that they stand before."""

    words: dict[int, list[int]] = field(default_factory=dict)
    emptied: set[int] = field(default_factory=set)
    """FFMAs before which an instruction of the same pipe empties the operand cache."""

    def put(self, at: int, word: int, *, empties: bool = False) -> None:
        self.words.setdefault(at, []).append(word)
        if empties:
            self.emptied.add(at)


def placed(loop: CompiledLoop, plan: Registers) -> Places:
    """Place all others. Raises `UsageError` if the loop lacks what a loop of asynchronous copies has."""
    places, left = Places(), list(plan.others)

    def keep(
        one: Instruction, stall: int = 1, *, stay: bool = True, written: int = 7, read: int = 7, wait: int = 0
    ) -> int:
        return renamed(one, plan.names) | control(stall, stay=stay, written=written, read=read, wait=wait)

    def pick(opcode: str) -> Instruction:
        found = next((one for one in left if one.opcode == opcode), None)
        if found is None:
            raise UsageError(f"{loop.function.name}: no {opcode} in its main loop")
        left.remove(found)
        return found

    copies = [one for one in left if one.opcode == "LDGSTS"]
    if not copies:
        raise UsageError(f"{loop.function.name}: no asynchronous copies in its main loop")
    for one in _before_copies(left, copies):
        left.remove(one)
        places.put(STEP if one.opcode == "IMAD" else 0, keep(one), empties=True)
    for one in [one for one in left if one.is_idle]:
        left.remove(one)
        places.put(STEP + 72, keep(one))
    for number, one in enumerate(copies):
        left.remove(one)
        places.put(STEP + 72 + 8 * number, keep(one, read=COPIES if one is copies[-1] else 7))
    back, waiting, barrier, group = (pick(name) for name in ("BRA", "DEPBAR", "BAR", "LDGDEPBAR"))
    places.put(2 * STEP - 8, keep(group, written=GROUP))
    # In their order, and behind what reads the old values.
    for number, one in enumerate(one for one in left if one.opcode.startswith("U")):
        step, slot = (2, number) if number < 6 else (3, number - 6)
        places.put(step * STEP + 70 + 8 * slot, keep(one))
    _rest(loop, [one for one in left if not one.opcode.startswith("U")], places, keep)
    places.put(6 * STEP + 96, keep(waiting, 4, stay=False))
    places.put(6 * STEP + 98, keep(barrier, wait=1 << ODD | 1 << ODD_REST))
    for address, base in ((plan.address_b, plan.base_b), (plan.address_a, plan.base_a)):
        places.put(7 * STEP, address_word(address, base), empties=True)
    places.put(8 * STEP, keep(back, 6), empties=True)
    return places


def address_word(one: Instruction, base: int) -> int:
    """The computation of a stage's address, into another register."""
    return renamed(one, {one.operands[0].index: base}) | control()


def _before_copies(left: list[Instruction], copies: list[Instruction]) -> list[Instruction]:
    """The instructions of this iteration whose results the copies read, without carries: those are the next one's."""
    wanted = {register for one in copies for register in touched(one, writes=False)}
    found: list[Instruction] = []
    for one in reversed(left[: left.index(copies[-1])]):
        if one in copies or one.is_idle:
            continue
        if touched(one, writes=True) & wanted or one.text.startswith("ISETP.GT"):
            found.append(one)
            wanted |= touched(one, writes=False)
    return [one for one in reversed(found) if not _carries(one)]


def _carries(one: Instruction) -> bool:
    return one.opcode in ("LEA", "IADD3") and any(operand.kind == "pred" for operand in one.operands[1:2])


def _rest(loop: CompiledLoop, rest: list[Instruction], places: Places, keep: Keep) -> None:
    """One behind the other where a step begins, dependent ones a step apart."""
    at = 2 * STEP
    results: dict[int, set[tuple[str, int]]] = {}
    first = True
    for one in rest:
        predicates = {("P", operand.index) for operand in one.operands if operand.kind == "pred" and operand.index != 7}
        if one.predicate is not None:
            predicates.add(("P", one.predicate.index))
        reads, writes = ({("R", register) for register in touched(one, writes=kind)} for kind in (False, True))
        while (reads | writes | predicates) & results.get(at, set()) or len(results.get(at, ())) > _SIZE_OF_CROWD:
            at += STEP
        if at > 6 * STEP:
            raise UsageError(f"{loop.function.name}: no place for {one.text} before the barrier")
        results.setdefault(at, set()).update(writes | predicates)
        places.put(at, keep(one, wait=1 << COPIES if first else 0), empties=True)
        first = False
