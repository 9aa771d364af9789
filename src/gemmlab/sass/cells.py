"""Cells: the registers and predicates of a thread, numbered. The module finds those that an instruction accesses, and
those that determine the control flow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from gemmlab.sass.blocks import successors
from gemmlab.sass.instruction import PT, RZ, URZ, Instruction, Operand, SassFunction
from gemmlab.sass.metrics import matrix_shape

UNIFORM, PREDICATE, UNIFORM_PREDICATE = 256, 512, 520
"""Numbers of the first uniform register, predicate and uniform predicate; vector registers begin at cell 0.

So `R4` is cell 4, `UR4` is 260, `P4` is 516, and `UP4` is 524.
"""
_FIRST = {"reg": 0, "ureg": UNIFORM, "pred": PREDICATE, "upred": UNIFORM_PREDICATE}
_NONE = {"reg": RZ, "ureg": URZ, "pred": PT, "upred": PT}
_PREDICATES = frozenset(range(_FIRST["pred"], _FIRST["pred"] + PT))
_UNIFORM_PREDICATES = frozenset(range(_FIRST["upred"], _FIRST["upred"] + PT))
_STEERING = frozenset({
    "BRA", "BRX", "JMP", "EXIT", "CALL", "RET", "BSSY", "BSYNC", "BREAK", "BMOV", "WARPSYNC", "ENDCOLLECTIVE", "BAR",
    "BPT", "YIELD", "NANOSLEEP",
})  # fmt: skip
"""Opcodes that branch, exit, wait or synchronise: `deciding` takes all cells that they read as deciding."""
CALCULATING = frozenset({
    "IADD3", "IMAD", "ISETP", "LEA", "LOP3", "SHF", "MOV", "SEL", "PRMT", "IMNMX", "VIMNMX", "VIADD", "VIADDMNMX",
    "VIMNMX3", "IABS", "POPC", "FLO", "BREV", "SGXT", "BMSK", "PLOP3", "P2R", "R2P", "VOTE", "SHFL", "MATCH", "R2UR",
    "REDUX", "FADD", "FMUL", "FFMA", "FSETP", "FSET", "FSEL", "FMNMX", "FCHK", "MUFU", "FRND", "F2I", "I2F", "F2F",
    "I2I", "I2IP", "F2FP", "DADD", "DMUL", "DFMA", "DSETP", "HADD2", "HMUL2", "HFMA2", "HSETP2", "HMNMX2", "LDC",
    "ULDC", "UIADD3", "UIMAD", "UISETP", "ULEA", "ULOP3", "USHF", "UMOV", "USEL", "UPRMT", "UPLOP3", "UFLO", "UPOPC",
    "UBMSK", "USGXT", "UBREV", "VOTEU", "CS2R", "S2R", "S2UR", "I2FP", "F2IP", "FADD32I", "FFMA32I", "FMUL32I",
    "HADD2_32I", "HFMA2_32I", "HMUL2_32I", "HSET2", "IDP", "VABSDIFF", "VABSDIFF4",
})  # fmt: skip
"""Opcodes whose results depend only on constants and on operands, of the same lane or of others.

`S2R`, `S2UR` and `CS2R` also depend on a special register, which `_steady` judges.
"""
_STEADY = ("SR_TID", "SR_CTAID", "SR_NTID", "SR_NCTAID", "SR_LANEID", "SRZ", "SR_LTMASK", "SR_EQMASK", "SR_GEMASK")
"""Beginnings of the names of special registers whose value is constant over a thread's lifetime."""
_TOGETHER = frozenset({"SHFL", "VOTE", "VOTEU", "MATCH", "REDUX", "R2UR"})
"""Opcodes that exchange values between lanes."""
_ANYWHERE = frozenset({"CALL", "RET", "BRX", "JMX", "BRXU", "JMXU", "JMP", "ENDCOLLECTIVE"})
"""Opcodes after which any instruction is assumed to follow: the target is in a register, or was set earlier."""
_TEXTURES = frozenset({"TEX", "TLD", "TLD4", "TXD"})
"""Opcodes whose first two register operands are results."""
_QUADS = frozenset({"HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "LDSM", "STSM", "TEX", "TLD", "TLD4"})


@dataclass(frozen=True, slots=True)
class Use:
    """The cells that one instruction reads and writes."""

    reads: frozenset[int]
    writes: frozenset[int]


def use_of(instruction: Instruction) -> Use:
    """Return the cells that an instruction reads and writes.

    Both sets may have too many cells. Too few are only the uniform registers that bulk copies and tensor copies read,
    which have no result.
    """
    operands = instruction.operands
    count = _width(instruction)
    reads = {cell for operand in operands for cell in _within(operand, count)}
    if instruction.predicate is not None:
        reads |= set(_within(instruction.predicate, 1))
    writes = {cell for operand in _results(instruction) for cell in _within(operand, count)}
    if instruction.opcode in ("R2P", "P2R"):
        reads |= _PREDICATES
        writes |= _PREDICATES if instruction.opcode == "R2P" else frozenset()
    if instruction.opcode == "UR2UP":
        writes |= _UNIFORM_PREDICATES
    return Use(frozenset(reads), frozenset(writes))


def deciding(code: Sequence[Instruction], ran: Sequence[bool]) -> list[frozenset[int]] | None:
    """Return, for each index in the code, the cells that determine the control flow of lanes from there on.

    The lanes execute only the instructions whose element of `ran` is true; the other indices get empty sets. Returns
    `None` if the control flow depends on memory, on time, or on an opcode that is not `CALCULATING`. A cell is left out
    before an instruction that overwrites it: one register may contain a sum at one place and a loop counter at another.
    Uniform cells, and registers that lanes exchange, are included at every place: some lanes may read them while others
    are elsewhere.
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
    """Return the indices that lanes may execute right after index `place`; some may be outside the code."""
    instruction = function.instructions[place]
    if instruction.opcode in _ANYWHERE:
        return range(len(function.instructions))
    return chain(successors(function, instruction), (o.value // 16 for o in instruction.operands if o.kind == "label"))


def replaced(instruction: Instruction) -> frozenset[int]:
    """Return the cells whose old values an arithmetic instruction discards: its first result's, unless it reads them.

    Of a result in two registers only the first counts, except with `.WIDE`. The set is empty for a predicated
    instruction, which may write nothing, and for a uniform result.
    """
    if instruction.predicate is not None or not instruction.operands:
        return frozenset()
    first, *others = instruction.operands
    if first.kind not in ("reg", "pred"):
        return frozenset()
    count = 2 if "WIDE" in instruction.modifiers else 1
    return frozenset(_within(first, count)).difference(*(_within(other, _width(instruction)) for other in others))


def _results(instruction: Instruction) -> Iterator[Operand]:
    """Yield the result operands: leading predicates, a register or barrier after them (two registers for a texture),
    and predicates after that.
    """
    registers = 2 if instruction.opcode in _TEXTURES else 1
    for operand in instruction.operands:
        if operand.kind in ("reg", "ureg", "barrier") and registers:
            registers -= 1
        elif operand.kind not in ("pred", "upred"):
            return
        yield operand


def _within(operand: Operand, count: int) -> Iterator[int]:
    """Yield the cells that an operand reads or writes.

    These are `count` adjacent ones for a register operand, one for a predicate, and two for each register in an
    address.
    """
    if operand.kind in _FIRST:
        if operand.index != _NONE[operand.kind]:
            wide = count if operand.kind in ("reg", "ureg") else 1
            yield from (_FIRST[operand.kind] + operand.index + more for more in range(wide))
        return
    # The address of a memory access or constant has at most two registers; a memory access may have a descriptor, too.
    for kind, index in (("reg", operand.base), ("ureg", operand.ubase), ("ureg", operand.desc)):
        if index != _NONE[kind]:
            yield from (_FIRST[kind] + index + more for more in range(2))


def _width(instruction: Instruction) -> int:
    """Return an upper bound on the number of registers that an operand of the instruction occupies."""
    names = instruction.modifiers
    if instruction.opcode.endswith("GMMA"):
        return max(4, matrix_shape(instruction)[1] // 2)
    if instruction.opcode == "TXD":
        return 8
    if instruction.opcode in _QUADS or any("128" in name for name in names):
        return 4
    # IMAD.HI adds its product of 64 bits to a pair.
    wide = any("64" in name or name in ("WIDE", "HI") for name in names)
    wide |= instruction.opcode in ("RET", "CALL", "BRX", "BRXU", "JMX", "JMXU", "CS2R", "LEPC", "CLMAD")
    return 2 if wide or instruction.opcode.startswith("D") else 1


def _steady(instruction: Instruction) -> bool:
    special = [operand for operand in instruction.operands if operand.kind == "special" and operand.name != "PR"]
    return all(operand.name.startswith(_STEADY) for operand in special)
