"""What an instruction reads and writes of its warp: registers and predicates, each a number, and what is decided by
them: where lanes go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gemmlab.sass.instruction import PT, RZ, URZ, Instruction, Operand

UNIFORM, PREDICATE, UNIFORM_PREDICATE = 256, 512, 520
"""The first of each file: `R4` is 4, `UR4` is 260, `P4` is 516, `UP4` is 524."""
_FIRST = {"reg": 0, "ureg": UNIFORM, "pred": PREDICATE, "upred": UNIFORM_PREDICATE}
_NONE = {"reg": RZ, "ureg": URZ, "pred": PT, "upred": PT}
_PREDICATES = frozenset(range(_FIRST["pred"], _FIRST["pred"] + PT))
_UNIFORM_PREDICATES = frozenset(range(_FIRST["upred"], _FIRST["upred"] + PT))
_STEERING = frozenset({
    "BRA", "BRX", "JMP", "EXIT", "CALL", "RET", "BSSY", "BSYNC", "BREAK", "BMOV", "WARPSYNC", "ENDCOLLECTIVE", "BAR",
    "BPT", "YIELD", "NANOSLEEP",
})  # fmt: skip
"""Where lanes go, and for whom they wait."""
_CALCULATING = frozenset({
    "IADD3", "IMAD", "ISETP", "LEA", "LOP3", "SHF", "MOV", "SEL", "PRMT", "IMNMX", "VIMNMX", "VIADD", "VIADDMNMX",
    "VIMNMX3", "IABS", "POPC", "FLO", "BREV", "SGXT", "BMSK", "PLOP3", "P2R", "R2P", "VOTE", "SHFL", "MATCH", "R2UR",
    "REDUX", "FADD", "FMUL", "FFMA", "FSETP", "FSET", "FSEL", "FMNMX", "FCHK", "MUFU", "FRND", "F2I", "I2F", "F2F",
    "I2I", "I2IP", "F2FP", "DADD", "DMUL", "DFMA", "DSETP", "HADD2", "HMUL2", "HFMA2", "HSETP2", "HMNMX2", "LDC",
    "ULDC", "UIADD3", "UIMAD", "UISETP", "ULEA", "ULOP3", "USHF", "UMOV", "USEL", "UPRMT", "UPLOP3", "UFLO", "UPOPC",
    "UBMSK", "USGXT", "UBREV", "VOTEU", "CS2R", "S2R", "S2UR", "I2FP", "F2IP", "FADD32I", "FFMA32I", "FMUL32I",
    "HADD2_32I", "HFMA2_32I", "HMUL2_32I", "HSET2", "IDP", "VABSDIFF", "VABSDIFF4",
})  # fmt: skip
"""Results that depend on operands and constants alone, for special registers see `_steady`."""
_STEADY = ("SR_TID", "SR_CTAID", "SR_NTID", "SR_NCTAID", "SR_LANEID", "SRZ", "SR_LTMASK", "SR_EQMASK", "SR_GEMASK")
"""Special registers that hold the same as long as a thread lives."""
_QUADS = frozenset({"HMMA", "IMMA", "DMMA", "LDSM", "TEX", "TLD", "TLD4"})


@dataclass(frozen=True, slots=True)
class Use:
    """One instruction's."""

    reads: frozenset[int]
    writes: frozenset[int]


def use_of(instruction: Instruction) -> Use:
    """What is read may be too much, and is never too little; what is written neither."""
    operands = instruction.operands
    count = _width(instruction)
    reads = {cell for operand in operands for cell in _within(operand, count)}
    if instruction.predicate is not None:
        reads |= set(_within(instruction.predicate, 1))
    writes = {cell for operand in _results(operands) for cell in _within(operand, count)}
    if instruction.opcode in ("R2P", "P2R"):
        reads |= _PREDICATES
        writes |= _PREDICATES if instruction.opcode == "R2P" else frozenset()
    if instruction.opcode == "UR2UP":
        writes |= _UNIFORM_PREDICATES
    return Use(frozenset(reads), frozenset(writes))


def deciding(instructions: Sequence[Instruction]) -> frozenset[int] | None:
    """The registers and predicates that alone decide where the lanes go that run nothing but these instructions.

    `None` where memory or time has a part in it.
    """
    uses = [use_of(instruction) for instruction in instructions]
    pairs = list(zip(instructions, uses, strict=True))
    found = {cell for instruction, use in pairs if instruction.opcode in _STEERING for cell in use.reads}
    rest = [pair for pair in pairs if pair[0].opcode not in _STEERING]
    while rest:
        taken = [pair for pair in rest if pair[1].writes & found]
        if not all(instruction.opcode in _CALCULATING and _steady(instruction) for instruction, _ in taken):
            return None
        if not taken:
            break
        rest = [pair for pair in rest if not pair[1].writes & found]
        found |= {cell for _, use in taken for cell in use.reads}
    return frozenset(found)


def _results(operands: Iterable[Operand]) -> Iterator[Operand]:
    """The leading predicates, the first register if nothing else stands before it, and the predicates behind it."""
    registers = 0
    for operand in operands:
        if operand.kind in ("reg", "ureg", "barrier") and not registers:
            registers = 1
        elif operand.kind not in ("pred", "upred"):
            return
        yield operand


def _within(operand: Operand, count: int) -> Iterator[int]:
    """The cells that an operand names."""
    if operand.kind in _FIRST:
        if operand.index != _NONE[operand.kind]:
            wide = count if operand.kind in ("reg", "ureg") else 1
            yield from (_FIRST[operand.kind] + operand.index + more for more in range(wide))
        return
    # An address, or a constant's: two registers at most; and the descriptor of a memory access.
    for kind, index in (("reg", operand.base), ("ureg", operand.ubase), ("ureg", operand.desc)):
        if index != _NONE[kind]:
            yield from (_FIRST[kind] + index + more for more in range(2))


def _width(instruction: Instruction) -> int:
    """Registers that an operand may take."""
    names = instruction.modifiers
    if instruction.opcode in _QUADS or any("128" in name for name in names):
        return 4
    # IMAD.HI adds its product of 64 bits to a pair.
    wide = any("64" in name or name in ("WIDE", "HI") for name in names)
    wide |= instruction.opcode in ("RET", "CALL", "BRX", "CS2R")
    return 2 if wide or instruction.opcode.startswith("D") else 1


def _steady(instruction: Instruction) -> bool:
    special = [operand for operand in instruction.operands if operand.kind == "special" and operand.name != "PR"]
    return all(operand.name.startswith(_STEADY) for operand in special)
