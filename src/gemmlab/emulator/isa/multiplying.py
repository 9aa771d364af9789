"""Products of integers, added to a third operand."""

from __future__ import annotations

from gemmlab.emulator.form import Form, Result
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes


@opcode("IMAD", "UIMAD")
def imad(x: Form) -> None:
    """Compute `a * b + c`: the low 32 bits, with `.WIDE` all 64, with `.HI` the upper half; for both, `c` has 64 bits.

    `.X` adds a carry; a predicate after the result is the carry out of the 64 bits. `.MOV`, `.IADD` and `.SHL` have no
    effect: they name the purpose for which a compiler uses the instruction.
    """
    x.allow("WIDE", "HI", "U32", "X", "MOV", "IADD", "SHL")
    d = x.dest()
    if x.has("WIDE", "HI"):
        _wide(x, d)
        return
    total = x.source() * x.source() + x.source()
    if x.has("X"):
        total = total + x.predicate().zext("i32")
    d.set(total)


def _wide(x: Form, d: Result) -> None:
    outs = x.dest_predicates(1)
    a, b = _factor(x), _factor(x)
    operand = x.peek()
    if operand is not None and operand.kind == "imm":
        raise x.refuse("an immediate as 64 bits")
    c = x.source_pair()
    carry = x.constant(0, "i64")
    if operand is not None and operand.neg:
        # Subtraction adds the complement and 1, so that subtracting zero carries out.
        c, carry = c - 1, carry + 1
    if x.has("X"):
        carry = carry + x.predicate().zext("i64")
    partial = a * b + c
    total = partial + carry
    d.set((total >> 32).trunc("i32") if x.has("HI") else total)
    for out in outs:
        out.set(partial.ult(c) | total.ult(partial))


def _factor(x: Form) -> Lanes:
    operand = x.peek()
    if operand is not None and operand.neg:
        raise x.refuse("a negated factor of a wide product")
    factor = x.source()
    return factor.zext("i64") if x.has("U32") else factor.sext("i64")


@opcode("IDP")
def idp(x: Form) -> None:
    """Add `c` to a dot product: of four bytes and four bytes (`.4A`), or of two 16-bit numbers and the lower or upper
    two bytes (`.2A`).
    """
    d, a, b, c = x.dest(), x.source(), x.source(), x.source()
    match x.modifiers:
        case ("4A", "S8" | "U8" as left, "S8" | "U8" as right):
            width, count, offset = 8, 4, 0
        case ("2A", "LO" | "HI" as part, "S16" | "U16" as left, "S8" | "U8" as right):
            width, count, offset = 16, 2, 16 * (part == "HI")
        case _:
            raise x.refuse()
    total = c
    for number in range(count):
        one = field(a, width * number, width, signed=left[0] == "S")
        two = field(b, 8 * number + offset, 8, signed=right[0] == "S")
        total = total + one * two
    d.set(total)


def field(value: Lanes, start: int, width: int, *, signed: bool) -> Lanes:
    """Return bits `start` to `start + width - 1` of a word, extended to 32 bits."""
    top = value << (32 - start - width)
    return top.arithmetic_shift(32 - width) if signed else top >> (32 - width)


@opcode("CLMAD")
def clmad(x: Form) -> None:
    """Multiply 64-bit operands without carries, and xor the lower (`.HI`: upper) 64 bits with `c` (PTX, `clmad`)."""
    x.allow("LO", "HI")
    d, a, b, c = x.dest(), x.source_pair(), x.source_pair(), x.source_pair()
    if any(operand.kind == "imm" for operand in x.instruction.operands):
        raise x.refuse("an immediate as 64 bits")
    total = c
    for bit in range(1 if x.has("HI") else 0, 64):
        shifted = a >> (64 - bit) if x.has("HI") else a << bit
        total = total ^ (shifted & -((b >> bit) & 1))
    d.set(total)
