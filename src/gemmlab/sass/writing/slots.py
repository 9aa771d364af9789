"""Places of operands in the 128-bit instruction word of sm_75 to sm_90.

Register numbers take four bytes: the result at bit 16, the sources at 24, 32 and 64. Bits 9 to 11 are the form, which
states which source is a constant, an immediate or a uniform register. That source takes bits 32 to 63, and a register
source that would be there moves to bit 64. Predicates are at 81 and 84 (results), 87, 77 and 68 (sources), the guard at
12.

NVIDIA publishes none of this. The bits in each place are compared with the number that nvdisasm prints, and an
instruction is refused if they differ. S. Gray's maxas, D. Yan's turingas and the CuAssembler project describe the
layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gemmlab.core.errors import UsageError
from gemmlab.sass.instruction import RZ, URZ, Instruction, Operand
from gemmlab.sass.register_accesses import ASYNCHRONOUS, Part

_RESULT, _A, _B, _C, _TEXTURE_HANDLE = 16, 24, 32, 64, 40
_REGISTER_BITS, _UNIFORM_BITS, _PREDICATE_BITS, _BARRIER_BITS = 8, 6, 3, 4
_RESULT_PREDICATES, _SOURCE_PREDICATES = (81, 84), (87, 77, 68)
_THIRD_IS_SPECIAL = frozenset({2, 3, 7})
"""Forms in which the third source, not the second, is an immediate, a constant or a uniform register."""
_ONE_SOURCE = frozenset({"MOV", "UMOV", "F2I", "I2F", "F2F", "FRND", "MUFU", "POPC", "UPOPC", "FLO", "UFLO", "BREV",
                         "UBREV", "I2FP", "IABS", "I2I"})  # fmt: skip
"""Opcodes whose only source is in the place of a second source."""
_TEXTURES = frozenset({"TEX", "TLD", "TLD4"})
_LOADS_UNIFORM_AT_32 = frozenset({"LDG", "LDS", "LDSM", "LD", "LDL"})


class EncodingError(UsageError):
    """Error: an instruction, or a value of one of its fields, cannot be encoded. The message names it."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The bits of one register number in an instruction word.

    `operand` is the position of its operand, -1 for the guard.
    """

    operand: int
    part: Part
    kind: str
    """`"reg"`, `"ureg"`, `"pred"`, `"upred"` or `"barrier"`."""
    low: int
    width: int

    def read(self, encoding: int) -> int:
        return encoding >> self.low & (1 << self.width) - 1


def slots_of(instruction: Instruction) -> tuple[Slot, ...]:
    """Return the slot of every register number of an instruction.

    For opcodes of unknown layout, such as those in `ASYNCHRONOUS`, only the guard has a slot. Raises `EncodingError` if
    no place is known for a register, if the bits there differ from nvdisasm's text, or if two slots share a bit.
    """
    found = tuple(_slots(instruction))
    for slot in found:
        printed, encoded = _printed(instruction, slot), slot.read(instruction.encoding)
        if printed != encoded:
            raise EncodingError(
                f"cannot encode {instruction.text!r} (opcode {instruction.encoding & 0xFFF:#x}): operand "
                f"{slot.operand + 1} is not in bits {slot.low} to {slot.low + slot.width - 1}, which hold {encoded}"
            )
    bits = [bit for slot in found for bit in range(slot.low, slot.low + slot.width)]
    if len(bits) != len(set(bits)):
        raise EncodingError(f"cannot encode {instruction.text!r}: two of its operands would share bits")
    return found


def _printed(instruction: Instruction, slot: Slot) -> int:
    operand = instruction.predicate if slot.operand < 0 else instruction.operands[slot.operand]
    if operand is None:
        return 7
    return {"base": operand.base, "ubase": operand.ubase, "desc": operand.desc}.get(slot.part, operand.index)


def _slots(instruction: Instruction) -> Iterator[Slot]:
    guard = instruction.predicate
    yield Slot(-1, "guard", guard.kind if guard is not None else "pred", 12, _PREDICATE_BITS)
    if instruction.opcode in ASYNCHRONOUS or instruction.opcode in ("ELECT", "WARPSYNC"):
        # No slots are known for these operands, so that a change of their registers is refused.
        return
    values = list(_value_places(instruction))
    results = list(_RESULT_PREDICATES)
    sources = [87, 68] if "EX" in instruction.modifiers else list(_SOURCE_PREDICATES)
    past_sources = False
    for position, operand in enumerate(instruction.operands):
        match operand.kind:
            case "reg" | "ureg":
                low = dict(values)[position]
                past_sources |= low != _RESULT
                yield Slot(position, "value", operand.kind, low, _width(operand.kind))
            case "mem" | "const":
                past_sources = True
                yield from _address(instruction, operand, position, dict(values).get(position, _A))
            case "pred" | "upred":
                is_result = not past_sources and _predicate_result(instruction, position) and bool(results)
                places = results if is_result else sources
                if not places:
                    raise EncodingError(f"cannot encode {instruction.text!r}: no place is known for {operand.text!r}")
                yield Slot(position, "value", operand.kind, places.pop(0), _PREDICATE_BITS)
            case "barrier":
                yield Slot(position, "value", "barrier", _RESULT, _BARRIER_BITS)
            case "imm" | "special":
                past_sources |= operand.kind == "imm"


def _width(kind: str) -> int:
    return _REGISTER_BITS if kind == "reg" else _UNIFORM_BITS


def _predicate_result(instruction: Instruction, position: int) -> bool:
    """Return whether the predicate operand at `position`, which comes before all register sources, is a result."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode in ("VOTE", "VOTEU"):
        return position < len(operands) - 1
    if opcode in ("PLOP3", "UPLOP3"):
        return position < 2
    return opcode not in ("BRA", "EXIT", "WARPSYNC", "BAR", "LDGSTS", "BREAK", "BSYNC", "JMP", "RET", "CALL")


def _value_places(instruction: Instruction) -> Iterator[tuple[int, int]]:
    """Yield (position, lowest bit) of register operands, and of other operands that take the place of a register.

    Raises `EncodingError` if no place is known for a register.
    """
    opcode, operands = instruction.opcode, instruction.operands
    form = instruction.encoding >> 9 & 7
    second, third = (_C, _B) if form in _THIRD_IS_SPECIAL else (_B, _C)
    places = [_A, second, third]
    if opcode in _ONE_SOURCE:
        places = [_B]
    elif opcode in ("SHFL", "STG", "STS", "STL", "ST", "STSM", "RED", "REDG", "ATOM", "ATOMG", "ATOMS"):
        places = [_A, _B, _C]
    elif opcode == "LDGSTS":
        places = [_RESULT, _A]
    elif opcode in _TEXTURES:
        # Both results, then the coordinates, then the handle in a uniform register.
        places = [_C, _RESULT, _A, _TEXTURE_HANDLE]
    waiting_result = _has_result(instruction)
    for position, operand in enumerate(operands):
        if operand.kind in ("reg", "ureg") and waiting_result:
            waiting_result = False
            yield position, _RESULT
        elif operand.kind in ("reg", "ureg", "imm", "const", "mem") and places:
            yield position, places.pop(0)
        elif operand.kind in ("reg", "ureg"):
            raise EncodingError(f"cannot encode {instruction.text!r}: no place is known for {operand.text!r}")


def _has_result(instruction: Instruction) -> bool:
    opcode, operands = instruction.opcode, instruction.operands
    if opcode in ("STG", "STS", "STL", "ST", "STSM", "RED", "REDG", "LDGSTS", "RET", "CALL", "BRX", "JMX",
                  "R2P", "NANOSLEEP", "BAR", "BRA", "R2B", "FCHK", "QSPC", "CCTL", *_TEXTURES):  # fmt: skip
        return False
    if opcode.removeprefix("U").endswith(("SETP", "SETP2", "PLOP3")):
        return False
    return any(operand.kind in ("reg", "ureg") for operand in operands)


def _address(instruction: Instruction, operand: Operand, position: int, low: int) -> Iterator[Slot]:
    if operand.kind == "mem" or operand.base != RZ:
        base = low if operand.kind == "mem" else _A
        yield Slot(position, "base", "reg", base, _REGISTER_BITS)
    uniform_at = _B if instruction.opcode in _LOADS_UNIFORM_AT_32 or operand.kind == "const" else _C
    if operand.ubase != URZ:
        yield Slot(position, "ubase", "ureg", uniform_at, _UNIFORM_BITS)
    elif operand.desc != URZ and operand.kind == "mem":
        yield Slot(position, "desc", "ureg", uniform_at, _UNIFORM_BITS)


__all__ = ["EncodingError", "Slot", "slots_of"]
