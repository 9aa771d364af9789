"""The addresses from which a loop reads fragments: for the first iteration, and for the next one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemmlab.core.errors import UsageError
from gemmlab.sass.cells import UNIFORM
from gemmlab.sass.instruction import Instruction
from gemmlab.sass.rewriting.register_cells import cells

CONTROLLING = ("LDGSTS", "LDGDEPBAR", "DEPBAR", "BAR", "BRA")
"""Opcodes that a loop of asynchronous copies has beside arithmetic."""


@dataclass(frozen=True, slots=True)
class StageAddress:
    offset: int
    """Least offset of the fragments of step 0 from the address of the next iteration, in bytes."""
    entry: tuple[Instruction, ...]
    """The computation of the first iteration's address, all in one register, of what is there before the loop."""
    more: int
    """Bytes that it is less than an address of the next iteration's kind."""
    following: Instruction
    """The last instruction of the computation of the next iteration's."""


def stage_address(
    name: str, code: Sequence[Instruction], first: Sequence[Instruction], last: Sequence[Instruction], step: int
) -> StageAddress:
    """Return the address behind the `first` loads, those of step 1, and the `last` ones, those of the next step 0.

    `step` are the bytes between steps. Raises `UsageError` if the address is computed in some other way.
    """
    base, offset = last[0].operands[1].base, min(one.operands[1].value for one in last)
    following = _writer(code, code.index(last[0]), base)
    base, first_offset = first[0].operands[1].base, min(one.operands[1].value for one in first) - step
    entry = _slice(code, code.index(first[0]), base)
    if following is None or not entry or any(one.operands[1].base != base for one in first):
        raise UsageError(f"{name}: the address of {first[0].text} or of {last[0].text} is not computed in the loop")
    written = {cell for one in entry for cell in cells(one, writes=True)}
    if written != {base}:
        raise UsageError(f"{name}: the address of {first[0].text} is computed in {len(written)} registers, not in one")
    return StageAddress(offset, entry, first_offset - offset, following)


def needed(
    code: Sequence[Instruction], loads: Sequence[Instruction], roots: Sequence[Instruction], behind: frozenset[int]
) -> tuple[Instruction, ...]:
    """Return what else a loop has to do: everything but FFMAs, loads and `roots` that something reads.

    `behind` are the registers that are read in the next iteration or behind the loop.
    """
    found: list[Instruction] = []
    wanted = set(behind)
    for one in reversed(code):
        if one.opcode == "FFMA" or one in loads:
            continue
        writes, reads = (cells(one, writes=kind) for kind in (True, False))
        if one in roots:
            wanted = (wanted - writes) | reads
        elif one.opcode in CONTROLLING or one.is_idle or any(cell in wanted or cell >= UNIFORM for cell in writes):
            found.append(one)
            wanted = (wanted - (writes if one.predicate is None else set())) | reads
    return tuple(reversed(found))


def _writer(code: Sequence[Instruction], before: int, register: int) -> Instruction | None:
    return next((one for one in reversed(code[:before]) if register in cells(one, writes=True)), None)


def _slice(code: Sequence[Instruction], before: int, register: int) -> tuple[Instruction, ...]:
    """The instructions of this iteration that a register's value comes from, in order."""
    found, wanted = list[Instruction](), {register}
    for one in reversed(code[:before]):
        writes = cells(one, writes=True)
        if writes & wanted:
            found.append(one)
            wanted = (wanted - writes) | cells(one, writes=False)
    return tuple(reversed(found))
