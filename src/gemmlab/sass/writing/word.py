"""An instruction word as named fields, and back: `encode(decode(instruction)) == instruction.encoding`.

The fields cover all 128 bits, each once. Opcode, guard, registers, numbers and control codes are decoded. Everything
else (modifiers such as `.WIDE`, signs, and bits of unknown meaning) is in fields named by their lowest and highest bit,
as in `bits_72_80`, and is encoded without change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from gemmlab.sass.instruction import Control, Instruction
from gemmlab.sass.writing.slots import EncodingError, Slot, slots_of

WORD_BITS = 128
_OPCODE, _GUARD_NOT = (0, 12), (15, 1)
_CONTROL = {
    "stall": (105, 4), "yield": (109, 1), "write_barrier": (110, 3), "read_barrier": (113, 3), "wait_mask": (116, 6),
    "reuse": (122, 4),
}  # fmt: skip
_LONGEST_STAY = 11
"""The longest stall, in cycles, that may have the yield bit set."""
_NUMBERS = {"imm": (32, 32), "const": (38, 21), "mem": (40, 24)}
"""(lowest bit, width) of an immediate, of a constant's offset and bank, and of the offset of a memory access."""


@dataclass(frozen=True, slots=True)
class Word:
    """A decoded instruction word."""

    opcode: int
    """12 bits: the operation and the form of its operands."""
    guard_not: bool
    slots: tuple[Slot, ...]
    registers: tuple[int, ...]
    """Register number in each of `slots`."""
    control: Control
    rest: tuple[tuple[str, int, int, int], ...]
    """(name, lowest bit, width, value) of all other fields, in order of their lowest bits."""

    def number(self, operand: int, part: str = "value") -> int:
        """Return the register number in one part of an operand. Raises `EncodingError` if there is none."""
        return self.registers[self._place(operand, part)]

    def with_register(self, operand: int, number: int, part: str = "value") -> Word:
        """Return the word with another register number in one part of an operand.

        Raises `EncodingError` if there is none to replace, or if the number has no encoding.
        """
        place = self._place(operand, part)
        registers = (*self.registers[:place], number, *self.registers[place + 1 :])
        _require(f"register {number} of operand {operand + 1}", number, self.slots[place].width)
        return replace(self, registers=registers)

    def with_control(self, control: Control) -> Word:
        """Return the word with other control codes. Raises `EncodingError` if these have no encoding together."""
        for name, (_, width) in _CONTROL.items():
            _require(name, _values(control)[name], width)
        _require_together(control)
        return replace(self, control=control)

    def _place(self, operand: int, part: str) -> int:
        for place, slot in enumerate(self.slots):
            if (slot.operand, slot.part) == (operand, part):
                return place
        raise EncodingError(f"opcode {self.opcode:#x} has no register as {part} of operand {operand + 1}")


def decode(instruction: Instruction) -> Word:
    """Return the fields of an instruction. Raises `EncodingError` as `slots_of` does."""
    encoding, slots = instruction.encoding, slots_of(instruction)
    return Word(
        opcode=_bits(encoding, *_OPCODE),
        guard_not=bool(_bits(encoding, *_GUARD_NOT)),
        slots=slots,
        registers=tuple(slot.read(encoding) for slot in slots),
        control=Control.of(encoding),
        rest=tuple(
            (name, low, width, _bits(encoding, low, width)) for name, low, width in _rest(slots, _kind(instruction))
        ),
    )


def encode(word: Word) -> int:
    """Return the 128-bit instruction word of these fields."""
    made = word.opcode | word.guard_not << _GUARD_NOT[0]
    for slot, number in zip(word.slots, word.registers, strict=True):
        made |= number << slot.low
    for name, value in _values(word.control).items():
        made |= value << _CONTROL[name][0]
    for _, low, _, value in word.rest:
        made |= value << low
    return made


def understood(name: str) -> bool:
    """Return whether the field `name` of `Word.rest` has a known meaning; other fields are named `bits_...`."""
    return not name.startswith("bits_")


def _values(control: Control) -> Mapping[str, int]:
    return {
        "stall": control.stall, "yield": int(control.yield_), "write_barrier": control.write_barrier,
        "read_barrier": control.read_barrier, "wait_mask": control.wait_mask, "reuse": control.reuse,
    }  # fmt: skip


def _kind(instruction: Instruction) -> str:
    """Return the key in `_NUMBERS` of the number in the word, `""` if it has none or its place is not known."""
    kinds = {operand.kind for operand in instruction.operands}
    if instruction.opcode not in ("LDGSTS", "SHFL", "BAR", "DEPBAR"):
        for kind in ("mem", "const", "imm"):
            # Forms 4 and 2 have an immediate at 32; a shift or truth table elsewhere is among the modifiers.
            if kind in kinds and (kind != "imm" or instruction.encoding >> 9 & 7 in (2, 4)):
                return kind
    return ""


@lru_cache(maxsize=4096)
def _rest(slots: tuple[Slot, ...], kind: str) -> tuple[tuple[str, int, int], ...]:
    """Return (name, lowest bit, width) of all fields that are neither registers nor control codes."""
    taken = set(range(*_OPCODE)) | {_GUARD_NOT[0]}
    for low, width in [*((slot.low, slot.width) for slot in slots), *_CONTROL.values()]:
        taken |= set(range(low, low + width))
    fields = []
    if kind:
        low, width = _NUMBERS[kind]
        number = set(range(low, low + width))
        if not number & taken:
            fields.append((kind, low, width))
            taken |= number
    return tuple(sorted([*fields, *_runs(taken)], key=lambda field: field[1]))


def _runs(taken: set[int]) -> Iterator[tuple[str, int, int]]:
    start: int | None = None
    for bit in range(WORD_BITS + 1):
        free = bit < WORD_BITS and bit not in taken
        if free and start is None:
            start = bit
        elif not free and start is not None:
            yield f"bits_{start}_{bit - 1}", start, bit - start
            start = None


def _bits(encoding: int, low: int, width: int) -> int:
    return encoding >> low & (1 << width) - 1


def _require(name: str, value: int, width: int) -> None:
    if not 0 <= value < 1 << width:
        raise EncodingError(
            f"{name} cannot be encoded: its field has {width} bits, values 0 to {(1 << width) - 1}, not {value}"
        )


def _require_together(control: Control) -> None:
    """Raise `EncodingError` for combinations of stall, yield and reuse that nvdisasm calls undefined."""
    if control.yield_ and not 1 <= control.stall <= _LONGEST_STAY:
        raise EncodingError(
            f"a stall of {control.stall} cannot be encoded with the yield bit set: it would be 1 to {_LONGEST_STAY}"
        )
    if control.reuse & 7 and (control.stall == 0 or (not control.yield_ and control.reuse & 6 == 6)):
        raise EncodingError(
            f"reuse flags {control.reuse:#x} cannot be encoded with a stall of {control.stall} and the yield bit "
            f"{'set' if control.yield_ else 'clear'}"
        )
