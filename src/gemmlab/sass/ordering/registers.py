"""Exchanges of registers between banks, so that fewer instructions of a loop lose cycles to bank conflicts.

Only registers that every instruction of the function accesses as operands of one register are exchanged. Registers of
addresses stay, and so do parts of pairs and of groups of four, which memory instructions use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gemmlab.sass.banks import conflict_cycles
from gemmlab.sass.cells import UNIFORM
from gemmlab.sass.instruction import RZ, Instruction, Operand
from gemmlab.sass.register_accesses import Access, accesses_of
from gemmlab.sass.writing.word import decode, encode

_ROUNDS = 4
_STACK_POINTER = 1


def single_registers(instructions: Sequence[Instruction]) -> list[int]:
    """Return the numbers of the vector registers that are never part of a wider operand or of an address, ascending.

    The stack pointer R1 is left out.
    """
    alone: dict[int, bool] = {}
    for instruction in instructions:
        accesses = accesses_of(instruction)
        for access in (*accesses.reads, *accesses.writes):
            for cell in access.cells:
                if cell < UNIFORM:
                    alone[cell] = alone.get(cell, True) and access.count == 1 and access.part == "value"
    return sorted(cell for cell, is_alone in alone.items() if is_alone and cell != _STACK_POINTER)


def better_banks(loop: Sequence[Instruction], everything: Sequence[Instruction], arch: str) -> dict[int, int]:
    """Return (old -> new) numbers of registers that give the loop fewer bank conflicts; empty if none are found.

    `everything` has all instructions of the function, in which the registers are renumbered.
    """
    free = set(single_registers(everything))
    found: dict[int, int] = {}
    for _ in range(_ROUNDS):
        cost = loop_conflicts(loop, found, arch)
        changed = False
        for place, cycles in enumerate(cost):
            if not cycles:
                continue
            trial = _relieved(loop, found, free, place, arch, sum(cost))
            if trial is not None:
                found, changed = trial, True
                cost = loop_conflicts(loop, found, arch)
        if not changed:
            break
    return {old: new for old, new in found.items() if old != new}


def loop_conflicts(loop: Sequence[Instruction], numbers: Mapping[int, int], arch: str) -> list[int]:
    """Return each instruction's cycles of bank conflicts after registers are renumbered by `numbers` (old -> new)."""
    return conflict_cycles([_printed_with(one, numbers) for one in loop], arch)


def _printed_with(instruction: Instruction, numbers: Mapping[int, int]) -> Instruction:
    """Return an instruction with renumbered register operands. The encoding stays: counting conflicts ignores it."""
    if not any(operand.kind == "reg" and operand.index in numbers for operand in instruction.operands):
        return instruction
    operands = tuple(
        replace(operand, index=numbers.get(operand.index, operand.index)) if operand.kind == "reg" else operand
        for operand in instruction.operands
    )
    return replace(instruction, operands=operands)


def _relieved(
    loop: Sequence[Instruction], found: Mapping[int, int], free: set[int], place: int, arch: str, cost: int
) -> dict[int, int] | None:
    """Return `found` with one more exchange, which leaves the loop less than `cost` cycles of conflicts.

    It exchanges a register that the instruction at `place` reads for the lowest one of `free` in the other bank. The
    result is `None` if this lowers the conflicts for none of the registers.
    """
    mine = [operand.index for operand in loop[place].operands[1:] if operand.kind == "reg" and operand.index in free]
    for register in mine:
        now = found.get(register, register)
        for other in sorted(free):
            there = found.get(other, other)
            if (now + there) % 2:
                trial = {**found, register: there, other: now}
                if sum(loop_conflicts(loop, trial, arch)) < cost:
                    return trial
                break
    return None


def with_registers(instruction: Instruction, numbers: Mapping[int, int]) -> Instruction:
    """Return an instruction with the registers of `numbers` (old -> new) renumbered, in its operands and its encoding.

    Only operands of one register change (see `single_registers`): wider operands, address bases and guards keep theirs.
    """
    if not numbers:
        return instruction
    accesses = accesses_of(instruction)
    changed = {
        access.operand: numbers[access.first]
        for access in (*accesses.reads, *accesses.writes)
        if _moves(access, numbers)
    }
    if not changed:
        return instruction
    word = decode(instruction)
    operands: list[Operand] = list(instruction.operands)
    for position, number in changed.items():
        word = word.with_register(position, number)
        operands[position] = replace(operands[position], index=number)
    return replace(instruction, operands=tuple(operands), encoding=encode(word))


def _moves(access: Access, numbers: Mapping[int, int]) -> bool:
    return access.first in numbers and access.count == 1 and access.part == "value" and access.first != RZ
