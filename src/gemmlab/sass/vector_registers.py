"""The vector registers that any instruction reads and writes, and those of a warpgroup multiplication's matrices."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gemmlab.sass.instruction import RZ, Instruction
from gemmlab.sass.register_accesses import Access, UnknownAccessError, accesses_of

SIZE = re.compile(r"64x(\d+)x(\d+)")
"""Pattern of the size of a warpgroup multiplication, its first modifier."""
WARPGROUP_OPCODES = frozenset({"HGMMA", "QGMMA", "IGMMA"})
LEFT = 4
"""Number of registers that A takes in each thread, if it is in registers."""


def registers_of(instruction: Instruction) -> tuple[frozenset[int], frozenset[int]]:
    """Return (read, written): the numbers of the vector registers that an instruction accesses, without RZ.

    A predicated instruction accesses them only if its predicate holds. Of an instruction whose accesses are not known
    (`UnknownAccessError`) and that is no warpgroup multiplication, the registers that it names are returned.
    """
    spans = gmma_registers(instruction)
    if spans is not None:
        target, left, addend = spans
        return frozenset({*left, *addend}), frozenset(target)
    try:
        accesses = accesses_of(instruction)
    except UnknownAccessError:
        return _named(instruction)
    return _vector(accesses.reads), _vector(accesses.writes)


def gmma_registers(instruction: Instruction) -> tuple[range, range, range] | None:
    """Return the registers of D, A and C, each empty if there are none. C's may be D's.

    The result is `None` if the instruction is not a warpgroup multiplication.
    """
    size = SIZE.fullmatch(instruction.modifiers[0]) if instruction.modifiers else None
    if instruction.opcode not in WARPGROUP_OPCODES or size is None:
        return None
    registers = [operand.index for operand in instruction.operands if operand.kind == "reg"]
    count = int(size[1]) // (4 if "F16" in instruction.modifiers else 2)
    # Operands: the accumulator, perhaps A, descriptors, the accumulator again or RZ.
    target, *left, addend = (*registers, RZ, RZ)[: max(2, len(registers))]
    return _span(target, count), _span(left[0] if left else RZ, LEFT), _span(addend, count)


def _span(first: int, count: int) -> range:
    return range(0) if first == RZ else range(first, first + count)


def _named(instruction: Instruction) -> tuple[frozenset[int], frozenset[int]]:
    """Return (read, written) of the registers that an asynchronous instruction names: its first operand after
    predicates is a result. The result of SYNCS, an mbarrier's word, takes two registers.
    """
    operands = [operand for operand in instruction.operands if operand.kind not in ("pred", "upred")]
    results = [operand.index for operand in operands[:1] if operand.kind == "reg" and operand.index != RZ]
    reads = {operand.index for operand in operands[1:] if operand.kind == "reg"}
    reads |= {operand.base for operand in operands if operand.kind in ("mem", "const")}
    wide = 2 if instruction.opcode == "SYNCS" else 1
    return frozenset(reads - {RZ}), frozenset(cell for first in results for cell in range(first, first + wide))


def _vector(accesses: Sequence[Access]) -> frozenset[int]:
    return frozenset(cell for access in accesses for cell in access.cells if cell < RZ)
