"""Registers of warpgroup multiplications, and wavefronts of their operands in shared memory."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gemmlab.sass.instruction import RZ, Instruction

SIZE = re.compile(r"64x(\d+)x(\d+)")
OPCODES = frozenset({"HGMMA", "QGMMA", "IGMMA"})
LEFT = 4
"""Number of registers that A takes in each thread, if it is in registers."""


def gmma_registers(instruction: Instruction) -> Sequence[range] | None:
    """Return the registers of D, then those of A, each empty if there are none; then those of C if they are not D's.

    The result is `None` if the instruction is not a warpgroup multiplication.
    """
    size = SIZE.fullmatch(instruction.modifiers[0]) if instruction.modifiers else None
    if instruction.opcode not in OPCODES or size is None:
        return None
    registers = [operand.index for operand in instruction.operands if operand.kind == "reg"]
    count = int(size[1]) // (4 if "F16" in instruction.modifiers else 2)
    target, *others = registers or [RZ]
    spans = [range(0) if target == RZ else range(target, target + count)]
    # Operands: the accumulator, perhaps A, descriptors, the accumulator again or RZ.
    spans.append(range(others[0], others[0] + LEFT) if len(others) > 1 else range(0))
    if others and others[-1] not in {RZ, target}:
        spans.append(range(others[-1], others[-1] + count))
    return spans


def gmma_wavefronts(instruction: Instruction, executed: int) -> int:
    """Return the wavefronts that Nsight Compute counts for all executions of a warpgroup multiplication.

    `executed` is the number of its executions by warps. The ideal number of wavefronts is the same.

    An operand in shared memory takes one wavefront for 128 bytes, with any swizzle: 32 bytes of each of A's 64 rows and
    of each of B's columns. A in registers takes none. Measured on an H200 for all types of inputs.
    """
    size = SIZE.fullmatch(instruction.modifiers[0])
    if size is None:
        return 0
    rows = 0 if instruction.operands[1].kind == "reg" else 64
    # Four warps execute one multiplication.
    return executed * (rows + int(size[1])) * 32 // (128 * 4)
