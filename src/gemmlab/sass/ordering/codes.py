"""Control codes for reordered code: few stalls and waits, with which the check still passes, and reuse flags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gemmlab.sass.checking.control_codes import Distances, check_function
from gemmlab.sass.checking.reuse import sources
from gemmlab.sass.checking.steps import queue_of
from gemmlab.sass.instruction import Control, Instruction, SassFunction
from gemmlab.sass.writing.slots import EncodingError
from gemmlab.sass.writing.word import decode, encode

_ROUNDS = 24
_LONGEST_STAY = 11
"""Longest stall, in cycles, that may have the yield bit set."""
_FLAGGED = frozenset({"FFMA"})
_AHEAD = 3
"""Number of instructions after an FFMA among which `reuse_flags` looks for the next FFMA."""


class UnmendedError(EncodingError):
    """Error: no control codes were found that make an order of instructions correct. The message names the fault."""


def with_control(instruction: Instruction, control: Control) -> Instruction:
    """Return an instruction with other control codes, in its fields and its encoding.

    Raises `EncodingError` if they have no encoding.
    """
    if control == instruction.control:
        return instruction
    operands = instruction.operands
    if control.reuse != instruction.control.reuse:
        flags = dict(_bits(instruction))
        operands = tuple(
            replace(operand, reuse=bool(control.reuse >> flags[n] & 1)) if n in flags else operand
            for n, operand in enumerate(operands)
        )
    word = decode(instruction).with_control(control)
    return replace(instruction, control=control, operands=operands, encoding=encode(word))


def _bits(instruction: Instruction) -> Iterable[tuple[int, int]]:
    """Yield (position of the operand, number of its reuse flag's bit) for each source register."""
    for place, operand in sources(instruction):
        yield next(n for n, other in enumerate(instruction.operands) if n and other is operand), place


def least_stalls(code: Sequence[Instruction], places: Iterable[int]) -> list[Instruction]:
    """Return the code with each stall of more than one cycle at `places` lowered to one, and the yield bit set there.

    `places` are indices. `repaired` then adds the cycles that are needed.
    """
    made = list(code)
    for place in places:
        control = made[place].control
        if control.stall > 1:
            made[place] = with_control(made[place], replace(control, stall=1, yield_=True))
    return made


def reuse_flags(code: Sequence[Instruction], places: Sequence[int]) -> list[Instruction]:
    """Return the code with new reuse flags on the FFMAs: a flag if the next FFMA reads the same register in that place.

    Only the first two source places get flags, and only if the FFMA does not overwrite the register and the next FFMA
    follows closely (`_next_flagged`). `places` are the indices of one block's instructions, in order.
    """
    made = list(code)
    for at, here in enumerate(places):
        one = made[here]
        if one.opcode not in _FLAGGED:
            continue
        bits = 0
        two = _next_flagged([made[n] for n in places[at + 1 : at + 1 + _AHEAD]])
        if two is not None:
            result = one.operands[0].index
            next_at = {place: operand.index for place, operand in sources(two)}
            for place, operand in sources(one):
                if next_at.get(place) == operand.index != result and place < 2:
                    bits |= 1 << place
        made[here] = with_control(one, replace(one.control, reuse=bits, yield_=one.control.yield_ or bits > 0))
    return made


def _next_flagged(following: Sequence[Instruction]) -> Instruction | None:
    """Return the first FFMA of `following`; `None` if there is none or the operand cache may be empty by then.

    Any instruction that waits for a barrier may empty the cache, and so may any other before the FFMA, except shared
    and global memory instructions.
    """
    for instruction in following:
        if instruction.control.wait_mask:
            return None
        if instruction.opcode in _FLAGGED:
            return instruction
        if queue_of(instruction) not in ("shared", "global"):
            return None
    return None


def repaired(
    function: SassFunction, code: Sequence[Instruction], arch: str, compiled: Distances | None = None
) -> tuple[Instruction, ...]:
    """Return the code with stalls and wait bits added, and wrong reuse flags removed, until `check_function` passes.

    `function` gives name and labels. `compiled` has the distances in the compiler's code, as in `check_function`, but
    by indices into `code`.

    Raises `UnmendedError` if the check does not pass after `_ROUNDS` rounds, or no control code can remove a fault.
    """
    made = list(code)
    for _ in range(_ROUNDS):
        trial = replace_code(function, made)
        findings = check_function(trial, arch, compiled)
        if not findings:
            return tuple(made)
        stalled: set[int] = set()
        for finding in findings:
            place = finding.consumer.address // 16
            if finding.fault == "reuse":
                flagged = finding.producer.address // 16
                made[flagged] = with_control(made[flagged], replace(made[flagged].control, reuse=0))
            elif finding.fault == "waited for too early":
                # The barrier is set by the instruction before, or by one that issues in the same cycles.
                if place > 0 and place - 1 not in stalled:
                    stalled.add(place - 1)
                    made[place - 1] = _longer(made[place - 1])
            elif finding.barriers:
                control = made[place].control
                made[place] = with_control(
                    made[place], replace(control, wait_mask=control.wait_mask | 1 << min(finding.barriers))
                )
            elif finding.fault == "too early" and place > 0 and place - 1 not in stalled:
                stalled.add(place - 1)
                made[place - 1] = _longer(made[place - 1])
            elif finding.fault != "too early":
                raise UnmendedError(f"{function.name}: no control code removes this fault: {finding}")
    raise UnmendedError(f"{function.name}: the control codes still have faults after {_ROUNDS} rounds: {findings[0]}")


def _longer(instruction: Instruction) -> Instruction:
    control = instruction.control
    stall = min(control.stall + 1, 15)
    stays = control.yield_ and stall <= _LONGEST_STAY
    return with_control(instruction, replace(control, stall=stall, yield_=stays))


def replace_code(function: SassFunction, code: Sequence[Instruction]) -> SassFunction:
    """Return the function with `code` as its instructions; instruction i gets address 16 i."""
    placed = tuple(
        one if one.address == 16 * n else replace(one, address=16 * n) for n, one in enumerate(code)
    )  # fmt: skip
    return SassFunction(function.name, placed, function.labels)
