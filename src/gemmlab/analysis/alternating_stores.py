"""A test of whether a loop writes to another place of shared memory in each iteration, as with two buffers."""

from __future__ import annotations

from collections.abc import Sequence

from gemmlab.sass.instruction import Instruction
from gemmlab.sass.register_accesses import Accesses, UnknownAccessError, accesses_of

_STORES = frozenset({"STS", "LDGSTS"})
_NOTHING = Accesses((), ())


def alternates(instructions: Sequence[Instruction]) -> bool:
    """Return whether the shared address of a store or copy depends on what the loop carries from iteration to
    iteration, such as the number of a buffer.

    `instructions` are the loop's own, by ascending address. An address that is computed anew from values that stay does
    not change. Guards are ignored: they decide whether a store is made, not where.
    """
    each = [(instruction, *_cells(instruction)) for instruction in instructions]
    written: set[int] = set()
    first_read: set[int] = set()
    for _, reads, writes in each:
        first_read |= reads - written
        written |= writes
    changing = first_read & written
    for instruction, reads, writes in each:
        if instruction.opcode in _STORES and _address(instruction) & changing:
            return True
        if reads & changing:
            changing |= writes
        elif instruction.predicate is None:
            changing -= writes
    return False


def _cells(instruction: Instruction) -> tuple[set[int], set[int]]:
    found = _accesses(instruction)
    reads = {cell for access in found.reads if access.part != "guard" for cell in access.cells}
    return reads, {cell for access in found.writes for cell in access.cells}


def _address(instruction: Instruction) -> set[int]:
    """Return the registers of an instruction's first operand, which is the address in shared memory."""
    found = _accesses(instruction)
    return {cell for access in found.reads if access.operand == 0 for cell in access.cells}


def _accesses(instruction: Instruction) -> Accesses:
    try:
        return accesses_of(instruction)
    except UnknownAccessError:
        return _NOTHING
