"""Wavefronts of a warpgroup multiplication's operands in shared memory."""

from __future__ import annotations

from gemmlab.sass.instruction import Instruction
from gemmlab.sass.vector_registers import SIZE


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
