"""What an instruction reads and writes of its warp: registers and predicates, each a number, and what is decided by
them: where lanes go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from gemmlab.sass.blocks import successors
from gemmlab.sass.instruction import PT, RZ, URZ, Instruction, Operand, SassFunction

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
CALCULATING = frozenset({
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
_TOGETHER = frozenset({"SHFL", "VOTE", "VOTEU", "MATCH", "REDUX", "R2UR"})
"""What reads the registers of other lanes."""
_ANYWHERE = frozenset({"CALL", "RET", "BRX", "JMX", "BRXU", "JMXU", "JMP", "ENDCOLLECTIVE"})
"""What leads where registers say, or an instruction further up."""
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


def deciding(code: Sequence[Instruction], ran: Sequence[bool]) -> list[frozenset[int]] | None:
    """For each place, the registers and predicates that alone decide where lanes go from there that run nothing but the
    instructions marked in `ran`.

    `None` where memory or time has a part in it. A register that is written anew decides nothing before, so that one
    may hold a sum here and a counter there. What lanes have in common, or hand to each other, counts everywhere: some
    lanes may read it while others are elsewhere.
    """
    function = SassFunction("", tuple(code), {})
    running = [place for place in range(len(code)) if ran[place]]
    uses = {place: use_of(code[place]) for place in running}
    after = {place: [to for to in _following(function, place) if 0 <= to < len(code) and ran[to]] for place in running}
    found: list[frozenset[int]] = [frozenset()] * len(code)
    common: frozenset[int] = frozenset()
    changed = True
    while changed:
        changed = False
        for place in reversed(running):
            instruction, use = code[place], uses[place]
            needed = common.union(*(found[to] for to in after[place]))
            if instruction.opcode in _STEERING:
                before = needed | use.reads
            elif not use.writes & needed:
                before = needed
            elif instruction.opcode in CALCULATING and _steady(instruction):
                new = replaced(instruction)
                before = (needed - new) | (use.reads - new)
                common |= use.reads - new if instruction.opcode in _TOGETHER else frozenset()
            else:
                return None
            common |= {cell for cell in before if UNIFORM <= cell < PREDICATE or cell >= UNIFORM_PREDICATE}
            before |= common
            changed |= before != found[place]
            found[place] = before
    return found


def _following(function: SassFunction, place: int) -> Iterable[int]:
    """Places that lanes may go to from there."""
    instruction = function.instructions[place]
    if instruction.opcode in _ANYWHERE:
        return range(len(function.instructions))
    return chain(successors(function, instruction), (o.value // 16 for o in instruction.operands if o.kind == "label"))


def replaced(instruction: Instruction) -> frozenset[int]:
    """What a calculating instruction surely writes in every lane that runs it: its first result."""
    if instruction.predicate is not None or not instruction.operands:
        return frozenset()
    first, *others = instruction.operands
    if first.kind not in ("reg", "pred"):
        return frozenset()
    count = 2 if "WIDE" in instruction.modifiers else 1
    return frozenset(_within(first, count)).difference(*(_within(other, _width(instruction)) for other in others))


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
