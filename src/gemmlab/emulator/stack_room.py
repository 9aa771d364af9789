"""The local memory of each thread: a kernel's own frame, and those of the functions that it calls."""

from __future__ import annotations

from collections.abc import Sequence

from gemmlab.sass.instruction import STACK_POINTER, Instruction
from gemmlab.toolchain.cubin import CubinFunction

OPEN_STACK = 4096
"""Bytes of local memory a thread if the compiler could not bound the stack (recursion, calls by address)."""
USUAL_STACK = 1024
"""Bytes of local memory that a driver gives each thread by default (CU_LIMIT_STACK_SIZE). Code with calls may use them
although the cubin counts none: NVRTC 13.0 leaves out what a called function saves.
"""
STACK_ALIGNMENT = 16
"""Alignment in bytes of the top of the stack. Compiled code relies on it for 16-byte accesses to a kernel's frame, and
aligns a frame only for variables with a larger alignment. The frame size in the cubin may be any multiple of 8."""


def stack_room(function: CubinFunction, instructions: Sequence[Instruction]) -> int:
    """Return the bytes of local memory for each thread of a kernel; `instructions` are those of all its functions."""
    needed = OPEN_STACK if function.stack_bytes is None else max(function.stack_bytes, function.local_bytes)
    if sum(map(_taken_stack, instructions)) > needed:
        needed = max(needed, USUAL_STACK)
    return -(-needed // STACK_ALIGNMENT) * STACK_ALIGNMENT


def _taken_stack(instruction: Instruction) -> int:
    """Return the bytes by which an instruction moves the stack pointer down; 0 for any other instruction."""
    if instruction.opcode not in ("IADD3", "VIADD"):
        return 0
    kinds = [(operand.kind, operand.index if operand.kind == "reg" else 0) for operand in instruction.operands[:2]]
    amounts = [operand.value for operand in instruction.operands[2:] if operand.kind == "imm"]
    if kinds != [("reg", STACK_POINTER)] * 2 or len(amounts) != 1:
        return 0
    return max(0, -((amounts[0] + (1 << 31)) % (1 << 32) - (1 << 31)))
