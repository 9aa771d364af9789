"""The addresses in shared memory from which a loop reads fragments: in its first iteration, and in the next one.

A stage is one of the buffers in shared memory that the loop reads in turn, one in each iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemmlab.core.errors import UsageError
from gemmlab.sass.cells import UNIFORM
from gemmlab.sass.instruction import Instruction
from gemmlab.sass.rewriting.register_cells import cells

CONTROLLING = ("LDGSTS", "LDGDEPBAR", "DEPBAR", "BAR", "BRA")
"""Opcodes of copies, barriers and branches, which the rewritten loop needs even if nothing reads their results."""


@dataclass(frozen=True, slots=True)
class StageAddress:
    """The address of one operand's fragments in a stage of shared memory, as the compiled loop computes it."""

    offset: int
    """Bytes from the address that `following` computes to the first fragment of step 0 in the next iteration."""
    entry: tuple[Instruction, ...]
    """Instructions that compute the first iteration's address in one register, from registers set before the loop."""
    more: int
    """Bytes to add to the address that `entry` computes, so that `offset` applies to it too."""
    following: Instruction
    """The last instruction that computes the next iteration's address."""


def stage_address(
    name: str, code: Sequence[Instruction], first: Sequence[Instruction], last: Sequence[Instruction], step: int
) -> StageAddress:
    """Return the address of one operand's fragments.

    `code` has the loop's instructions. `first` are the operand's loads for step 1, `last` those for step 0 of the next
    iteration, and `step` is the number of bytes between steps. Raises `UsageError` if the loop does not compute the
    address, or not in one register; the message begins with `name`.
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
    """Return the instructions of `code` that a rewritten loop keeps besides FFMAs, `loads` and `roots`, in order.

    These are `CONTROLLING` ones, writes of uniform registers or predicates, and writes of values that another of them
    or a root reads. A value in a register of `behind` counts as read: by the next iteration, or by code after the loop.
    Instructions that no lane executes (`is_idle`) stay, too.
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
    """Return the instructions of `code` that compute the value of a register at index `before`, in order."""
    found, wanted = list[Instruction](), {register}
    for one in reversed(code[:before]):
        writes = cells(one, writes=True)
        if writes & wanted:
            found.append(one)
            wanted = (wanted - writes) | cells(one, writes=False)
    return tuple(reversed(found))
