"""Static metrics of a sequence of instructions: opcodes, operand reuse, floating-point operations.

Each instruction counts once, no matter how often it runs. Pass a loop's instructions for the metrics of the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gemmlab.sass.instruction import RZ, Instruction, Operand
from gemmlab.sass.pipes import pipe

WARP = 32
_PER_LANE = {
    "FFMA": 2, "FADD": 1, "FMUL": 1, "FFMA2": 4, "FADD2": 2, "FMUL2": 2, "HFMA2": 4, "HADD2": 2, "HMUL2": 2,
    "DFMA": 2, "DADD": 1, "DMUL": 1,
}  # fmt: skip
_MATRIX = frozenset({"HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "OMMA"})
_GROUPED = frozenset({"HGMMA", "IGMMA", "BGMMA", "QGMMA"})
"""Matrix opcodes that four warps execute together."""


def opcode_mix(instructions: Iterable[Instruction]) -> Counter[str]:
    """Return the number of instructions by opcode, without modifiers."""
    return Counter(instruction.opcode for instruction in instructions)


def share(instructions: Iterable[Instruction], opcode: str) -> float:
    """Return the fraction of the instructions other than NOPs that have an opcode, such as `share(loop, "FFMA")`."""
    mix = opcode_mix(instructions)
    return mix[opcode] / (mix.total() - mix["NOP"]) if mix[opcode] else 0.0


def code_bytes(instructions: Iterable[Instruction]) -> int:
    """Return the size of the instructions in bytes."""
    return 16 * sum(1 for _ in instructions)


def reuse_rate(instructions: Iterable[Instruction]) -> float | None:
    """Return the fraction of the source registers of arithmetic instructions that have `.reuse`.

    `None` if no arithmetic instruction reads a register.
    """
    read = [operand for instruction in instructions for operand in _sources(instruction)]
    return sum(operand.reuse for operand in read) / len(read) if read else None


def flops(instruction: Instruction) -> int:
    """Return the operations that an instruction does in a full warp; a multiply-add counts as two.

    Additions, multiplications and multiply-adds of floating-point numbers count, and matrix instructions, also those of
    integers such as IMMA; comparisons and MUFU do not. An instruction that four warps execute together counts a quarter
    in each. The result is 0 for instructions that only move or convert values (one of the first two sources is RZ, or
    `HADD2.F32`), and for the UTC instructions of tensor cores, whose shape is in a descriptor.
    """
    if instruction.opcode in _PER_LANE:
        idle = any(operand.kind == "reg" and operand.index == RZ for operand in instruction.operands[1:3])
        converts = instruction.opcode == "HADD2" and "F32" in instruction.modifiers
        return 0 if idle or converts else _PER_LANE[instruction.opcode] * WARP
    if instruction.opcode in _MATRIX or instruction.opcode in _GROUPED:
        m, n, k = matrix_shape(instruction)
        return 2 * m * n * k // (4 if instruction.opcode in _GROUPED else 1)
    return 0


def matrix_shape(instruction: Instruction) -> tuple[int, int, int]:
    """Return the shape (m, n, k) of a matrix instruction; zeros if its modifiers do not contain it.

    It is (16, 8, 16) for `HMMA.16816` and (64, 8, 16) for `HGMMA.64x8x16`.
    """
    for modifier in instruction.modifiers:
        parts = modifier.split("x")
        if len(parts) == 3 and all(part.isdigit() for part in parts):
            return int(parts[0]), int(parts[1]), int(parts[2])
        rows = "16" if modifier.startswith("168") else "8"
        if modifier.isdigit() and modifier.startswith(rows + "8"):
            return int(rows), 8, int(modifier[len(rows) + 1 :])
    return 0, 0, 0


def _sources(instruction: Instruction) -> list[Operand]:
    if pipe(instruction) not in ("fma", "fmaheavy", "alu", "fp16", "fp64", "tensor"):
        return []
    registers = [operand for operand in instruction.operands if operand.kind == "reg"]
    # Comparisons write predicates. In all other instructions of these pipes the destination is the first operand.
    first = instruction.operands[0] if instruction.operands else None
    written = 1 if first is not None and first.kind == "reg" else 0
    return [operand for operand in registers[written:] if operand.index != RZ]
