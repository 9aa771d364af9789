"""The exact registers and predicates that each operand of an instruction reads or writes.

The sets of `sass.cells` may be too large. Passes that rename registers, and the check of control codes, need exact
ones. The number of registers follows from modifiers such as `.64`, `.128` and `.WIDE`, and from the shape of a matrix
instruction. Registers are numbered as cells, as in `sass.cells`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from gemmlab.core.errors import UsageError
from gemmlab.sass.cells import PREDICATE, UNIFORM, UNIFORM_PREDICATE
from gemmlab.sass.instruction import PT, RZ, URZ, Instruction, Operand
from gemmlab.sass.metrics import matrix_shape

Part = Literal["guard", "value", "base", "ubase", "desc", "all"]
"""Role of the accessed cells: guard, operand itself, register of its address or descriptor, or all predicates."""
FIRST_CELL = {"reg": 0, "ureg": UNIFORM, "pred": PREDICATE, "upred": UNIFORM_PREDICATE}
NULL = {"reg": RZ, "ureg": URZ, "pred": PT, "upred": PT}
_SETS_PREDICATES = re.compile(r"U?[DFIHP]SETP2?$|U?PLOP3$")
_NO_RESULT = frozenset({
    "STG", "STS", "STL", "ST", "STSM", "RED", "REDG", "REDAS", "BAR", "BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU",
    "EXIT", "CALL", "RET", "WARPSYNC", "NANOSLEEP", "CCTL", "CCTLL", "MEMBAR", "ERRBAR", "DEPBAR", "LDGSTS", "R2P",
    "BSYNC", "BREAK", "BSSY", "KILL", "YIELD", "NOP", "LDGDEPBAR", "BPT", "UR2UP", "FENCE", "R2B", "PMTRIG", "SUST",
    "SURED",
})  # fmt: skip
"""Opcodes without a result among their operands."""
_TEXTURES = frozenset({"TEX", "TLD", "TLD4", "TXD"})
"""Opcodes of texture accesses with two results, which share the components of a mask."""
_SURFACES = frozenset({"SULD", "SUST", "SUATOM", "SURED"})
"""Opcodes of surface accesses, whose address is a register for each coordinate."""
_MATRIX = frozenset({"HMMA", "IMMA", "DMMA", "BMMA", "QMMA"})
"""Opcodes of a warp's matrix multiplications."""
_ATOMICS = frozenset({"ATOM", "ATOMG", "ATOMS"})
_LONG_INTEGERS = frozenset({"U64", "S64"})
_DATA_WIDTHS = {
    "128": 4, **dict.fromkeys(("64", "F64", *_LONG_INTEGERS), 2), "F32x2": 2, "F32x4": 4, "F16x4": 2, "F16x8": 4,
    "BF16x4": 2, "BF16x8": 4,
}  # fmt: skip
"""Modifier of a store or an atomic operation -> number of registers of the value."""
_EXTENTS = {"1D": 1, "2D": 2, "3D": 3, "CUBE": 3}
"""Shape of a texture or surface -> number of its coordinates, without that of an array."""
ASYNCHRONOUS = frozenset({
    "HGMMA", "IGMMA", "BGMMA", "QGMMA", "WARPGROUP", "WARPGROUPSET", "USETMAXREG", "UTMALDG", "UTMASTG", "UTMAREDG",
    "UTMAPF", "UTMACCTL", "UTMACMDFLUSH", "UBLKCP", "UBLKRED", "UBLKPF", "SYNCS", "ARRIVES", "ACQBULK", "ACQSHMINIT",
    "PREEXIT", "UCGABAR_ARV", "UCGABAR_WAIT", "STAS",
})  # fmt: skip
"""Opcodes of sm_90a whose results the warp's dependency barriers do not protect, or not all of them."""


class UnknownAccessError(UsageError):
    """Error: the register accesses of an instruction are not known."""


@dataclass(frozen=True, slots=True)
class Access:
    """Consecutive cells that one operand reads or writes."""

    first: int
    count: int
    operand: int
    """Position among the instruction's operands, -1 for the guard."""
    part: Part

    @property
    def cells(self) -> range:
        return range(self.first, self.first + self.count)


@dataclass(frozen=True, slots=True)
class Accesses:
    """The accesses of one instruction. `R2P`, `P2R` and `UR2UP` access all predicates of a file, as part `"all"`."""

    reads: tuple[Access, ...]
    writes: tuple[Access, ...]


@lru_cache(maxsize=1 << 16)
def accesses_of(instruction: Instruction) -> Accesses:
    """Return the exact accesses of an instruction.

    Raises `UnknownAccessError` for the opcodes in `ASYNCHRONOUS`, and for a matrix instruction of unknown shape.
    """
    opcode, operands = instruction.opcode, instruction.operands
    if opcode in ASYNCHRONOUS:
        raise UnknownAccessError(f"{instruction.text!r} at {instruction.address:#06x} is asynchronous: {opcode}")
    results = result_count(instruction)
    reads: list[Access] = []
    writes: list[Access] = []
    if instruction.predicate is not None:
        reads += _cells(instruction.predicate, 1, -1, "guard")
    source = 0
    for position, operand in enumerate(operands):
        if position < results and operand.kind in FIRST_CELL:
            width = _result_width(instruction, position) if operand.kind in ("reg", "ureg") else 1
            writes += _cells(operand, width, position, "value")
        elif operand.kind in ("mem", "const"):
            reads += _address(instruction, operand, position)
        elif operand.kind in FIRST_CELL:
            width = _source_width(instruction, source) if operand.kind in ("reg", "ureg") else 1
            reads += _cells(operand, width, position, "value")
        if position >= results and operand.kind in ("reg", "ureg", "imm", "const"):
            source += 1
    if opcode == "R2P":
        writes.append(Access(PREDICATE, PT, 0, "all"))
    if opcode == "P2R":
        reads.append(Access(PREDICATE, PT, 1, "all"))
    if opcode == "UR2UP":
        writes.append(Access(UNIFORM_PREDICATE, PT, 0, "all"))
    return Accesses(tuple(reads), tuple(writes))


def _cells(operand: Operand, width: int, position: int, part: Part) -> Iterator[Access]:
    if operand.index != NULL[operand.kind]:
        yield Access(FIRST_CELL[operand.kind] + operand.index, width, position, part)


def result_count(instruction: Instruction) -> int:
    """Return the number of operands that are results; they come first."""
    operands, opcode = instruction.operands, instruction.opcode
    if opcode in _NO_RESULT:
        return 0
    if _SETS_PREDICATES.match(opcode):
        return 2
    if opcode in ("FCHK", "QSPC"):
        return 1
    if opcode in ("VOTE", "VOTEU"):
        return len(operands) - 1
    leading = _predicates_from(operands, 0)
    if opcode in _TEXTURES:
        # The second operand has the first two components of the mask, the first the others; either may be RZ.
        return leading + 2
    if leading < len(operands) and operands[leading].kind in ("reg", "ureg"):
        # The carries come between the result and the first source.
        return _predicates_from(operands, leading + 1)
    return leading


def _predicates_from(operands: Sequence[Operand], start: int) -> int:
    """Return the position of the first operand from `start` on that is no predicate, or the number of operands."""
    kinds = [operand.kind in ("pred", "upred") for operand in operands[start:]]
    return start + (kinds.index(False) if False in kinds else len(kinds))


def _result_width(instruction: Instruction, position: int) -> int:
    """Return the number of registers that a result occupies; `position` is its place among the operands."""
    names, opcode = instruction.modifiers, instruction.opcode
    if opcode in _MATRIX:
        return _matrix_widths(instruction)[0]
    if opcode == "LDSM":
        return _matrices(names)
    if opcode == "F2F":
        return 2 if _float_types(names)[:1] == ["F64"] else 1
    if opcode == "F2I":
        return 2 if _LONG_INTEGERS & set(names) else 1
    if opcode in ("I2F", "FRND"):
        return 2 if "F64" in names else 1
    if opcode in _TEXTURES:
        components = _texture_mask(instruction).bit_count()
        second = next(n for n, one in enumerate(instruction.operands) if one.kind == "reg") + 1
        return min(2, components) if position == second else components - 2
    if opcode == "CS2R":
        return 1 if "32" in names else 2
    if opcode in ("DADD", "DMUL", "DFMA", "DMNMX", "CLMAD", "LEPC"):
        return 2
    if opcode in ("SHF", "USHF", "LEA", "ULEA", "ISETP"):
        return 1
    if opcode in _ATOMICS:
        return _data_width(names)
    if "WIDE" in names:
        return 2
    if "128" in names:
        return 4
    if opcode in ("UIADD3", "IADD3") and "64" in names:
        return 2
    return 2 if "64" in names and opcode not in ("MUFU", "POPC", "FLO") else 1


def _texture_mask(instruction: Instruction) -> int:
    """Return the mask of the components that a texture instruction fetches: its last operand if immediate, else 15."""
    last = instruction.operands[-1]
    return last.value if last.kind == "imm" else 0xF


def _texture_words(instruction: Instruction, source: int) -> int:
    """Return the number of registers of a source of a texture access: first the coordinates, then level and others.

    With `SCR`, the first source has at most two coordinates, and the second has the rest before the level.
    """
    names = instruction.modifiers
    shape = next((one.name for one in instruction.operands if one.kind == "text"), "2D")
    extents = _EXTENTS.get(shape.removeprefix("ARRAY_"), 2)
    places = extents + shape.startswith("ARRAY_")
    first = min(2, places) if "SCR" in names else places
    more = sum(name in ("LL", "LB", "DC", "AOFFI", "MS") for name in names)
    more += 2 * extents if instruction.opcode == "TXD" else 0
    return first if source == 0 else max(1, places - first + more) if source == 1 else 1


def _source_width(instruction: Instruction, source: int) -> int:
    """Return the number of registers that a source operand occupies.

    `source` is its index among the sources that are registers, immediates or constants.
    """
    names, opcode = instruction.modifiers, instruction.opcode
    if opcode in _TEXTURES:
        return _texture_words(instruction, source)
    if opcode in _MATRIX:
        return _matrix_widths(instruction)[1 + min(source, 2)] if source < 3 else 1
    if opcode in ("STG", "STS", "STL", "ST", *_ATOMICS, "RED", "REDG", "SUST", "SUATOM", "SURED"):
        return _data_width(names)
    if opcode == "STSM":
        return _matrices(names)
    if opcode == "MATCH":
        return 2 if "U64" in names else 1
    if opcode in ("F2F", "F2I", "I2F", "FRND"):
        if opcode == "I2F":
            return 2 if _LONG_INTEGERS & set(names) else 1
        if opcode == "F2F":
            return 2 if _float_types(names)[1:] == ["F64"] else 1
        return 2 if "F64" in names else 1
    if opcode in ("DADD", "DMUL", "DFMA", "DSETP", "DMNMX", "CLMAD"):
        return 2
    if opcode in ("RET", "CALL", "BRX", "JMX", "BRXU", "JMXU"):
        return 2
    if opcode in ("IMAD", "UIMAD") and ("WIDE" in names or "HI" in names):
        return 2 if source == 2 else 1
    if opcode == "I2IP":
        return 1
    if opcode in ("UIADD3", "IADD3", "UMOV") and "64" in names:
        return 2
    return 1


def _data_width(names: Iterable[str]) -> int:
    """Return the number of registers of the value that a store or an atomic operation with these modifiers takes."""
    return next((_DATA_WIDTHS[name] for name in names if name in _DATA_WIDTHS), 1)


def _float_types(names: Iterable[str]) -> list[str]:
    """Return the types that F2F names: the result's, then the source's."""
    return [name for name in names if name in ("F16", "F32", "F64", "BF16")]


def _matrices(names: Sequence[str]) -> int:
    """Return the number of matrices of 8 x 8 that LDSM or STSM moves, each in one register of a lane."""
    return int(names[-1]) if names and names[-1] in ("2", "4") else 1


def _matrix_widths(instruction: Instruction) -> tuple[int, int, int, int]:
    """Return how many 32-bit registers D, A, B and C of a warp's matrix multiplication take in each lane.

    Raises `UnknownAccessError` if the shape is not known.
    """
    names = instruction.modifiers
    m, n, k = matrix_shape(instruction)
    if not m * n * k:
        raise UnknownAccessError(f"{instruction.text!r} at {instruction.address:#06x}: unknown matrix shape")
    floats = 32 if "F32" in names else 16
    match instruction.opcode:
        case "DMMA":
            bits, out = 64, 64
        case "IMMA":
            bits, out = (4 if any(name in ("S4", "U4") for name in names) else 8), 32
        case "BMMA":
            bits, out = 1, 32
        case "QMMA":
            bits, out = 8, floats
        case _:
            bits, out = (32 if "TF32" in names else 16), floats
    stored = k // 2 if "SP" in names else k
    a, b, d = (
        max(1, rows * columns * size // 1024) for rows, columns, size in ((m, stored, bits), (k, n, bits), (m, n, out))
    )
    return d, a, b, d


def _address(instruction: Instruction, operand: Operand, position: int) -> Iterator[Access]:
    generic = instruction.opcode in ("LDG", "STG", "ATOMG", "REDG", "RED", "LD", "ST", "ATOM", "CCTL", "QSPC")
    generic |= instruction.opcode == "LDGSTS" and position > 0
    if operand.base != RZ:
        # The text of some instructions, and of all before sm_80, does not say that an address is a pair.
        wide = "64" in operand.suffix or (generic and operand.ubase == URZ and "U32" not in operand.suffix)
        count = _surface_words(instruction) if instruction.opcode in _SURFACES else 2 if wide else 1
        yield Access(operand.base, count, position, "base")
    if operand.ubase != URZ:
        yield Access(UNIFORM + operand.ubase, 2 if generic else 1, position, "ubase")
    if operand.desc != URZ:
        yield Access(UNIFORM + operand.desc, 2, position, "desc")


def _surface_words(instruction: Instruction) -> int:
    shape = next((name for name in instruction.modifiers if name.removeprefix("ARRAY_") in _EXTENTS), "1D")
    return _EXTENTS[shape.removeprefix("ARRAY_")] + shape.startswith("ARRAY_")


__all__ = ["ASYNCHRONOUS", "Access", "Accesses", "UnknownAccessError", "accesses_of", "result_count"]
