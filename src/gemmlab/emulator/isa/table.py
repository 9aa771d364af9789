"""The table of opcodes: one function for each opcode reads its operands and emits its effect.

    @opcode("FADD")
    def fadd(x: Form) -> None:
        d, a, b = x.dest(), x.source("f32"), x.source("f32")
        d.set(a + b)

A function is run once for each form (modifiers and operand kinds) that occurs in a program, and emits the code of that
form's handler. An operand or modifier that it does not handle is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from gemmlab.emulator.form import Form, UnsupportedError
from gemmlab.sass.instruction import RZ, URZ, Instruction

Meaning = Callable[[Form], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """The function of one opcode.

    `literals`: positions of operands whose value is part of the form; negative ones count from the end.
    """

    meaning: Meaning
    literals: tuple[int, ...] = ()


TABLE: dict[str, Entry] = {}


def opcode(*names: str, literals: tuple[int, ...] = ()) -> Callable[[Meaning], Meaning]:
    """Return a decorator that enters a function in the table under these opcodes.

    It raises `ValueError` for an opcode that is in the table already.
    """

    def enter(meaning: Meaning) -> Meaning:
        for name in names:
            if name in TABLE:
                raise ValueError(f"opcode {name} is in the table already")
            TABLE[name] = Entry(meaning, literals)
        return meaning

    return enter


def entry(instruction: Instruction) -> Entry:
    """Return the entry of an instruction's opcode.

    Raises `UnsupportedError` with the instruction and its source line (if known) if there is none.
    """
    found = TABLE.get(instruction.opcode)
    if found is None:
        near = get_close_matches(instruction.opcode, TABLE, n=2)
        hint = f" (nearest: {', '.join(near)})" if near else ""
        where = f", {instruction.line[0]}:{instruction.line[1]}" if instruction.line else ""
        raise UnsupportedError(f"the emulator does not know {instruction.opcode}{hint}: {instruction.text}{where}")
    return found


def form_key(instruction: Instruction) -> str:
    """Return the key of an instruction's handler: its opcode, its modifiers, and the form of each operand.

    The form is kind, signs and suffixes, the bank of a constant, which base registers there are, and the name or text
    of a special register or of an operand of kind `text`. An operand's value is in the key only if it is one of
    `Entry.literals`. Raises `UnsupportedError` for an opcode that is not in the table.
    """
    literals = {index % len(instruction.operands) for index in entry(instruction).literals if instruction.operands}
    parts = [".".join((instruction.opcode, *instruction.modifiers))]
    for index, operand in enumerate(instruction.operands):
        sign = "-" * operand.neg + "|" * operand.absolute + "!" * operand.invert
        shape = operand.kind + "".join(f".{name}" for name in operand.suffix)
        if operand.kind in {"const", "mem"}:
            registers = "r" * (operand.base != RZ) + "u" * (operand.ubase != URZ) + "d" * (operand.desc != URZ)
            shape += f"[{operand.bank}{registers}]"
        if operand.kind in {"special", "text"}:
            shape += f":{operand.name or operand.text}"
        if index in literals:
            shape += f"={operand.value}"
        parts.append(sign + shape)
    return " ".join(parts)
