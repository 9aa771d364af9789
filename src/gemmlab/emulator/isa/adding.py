"""Integer additions: with carries, with shifts, and absolute values."""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.emulator.form import Form, join
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes


def term(x: Form) -> Lanes:
    """Take the next operand as a 33-bit term of a sum. A negated one is complement plus one: for zero, it carries."""
    operand = x.peek()
    value = x.source()
    if operand is not None and operand.neg:
        return (value - 1).zext("i64") + 1
    return value.zext("i64")


@opcode("IADD3", "UIADD3")
def iadd3(x: Form) -> None:
    """Add three integers. Predicates are carries out and, with `.X`, carries in.

    The first carry out is set if the carry is 1 or 2, the second if it is 2; their sum is the carry. `.64` adds pairs
    without carries.
    """
    x.allow("X", "64")
    d = x.dest()
    if x.has("64"):
        d.set(_wide_term(x) + _wide_term(x) + _wide_term(x))
        return
    outs = x.dest_predicates(2)
    if not outs:
        total = x.source() + x.source() + x.source()
        for carry in _carries(x, 2):
            total = total + carry.zext("i32")
        d.set(total)
        return
    wide = term(x) + term(x) + term(x)
    for carry in _carries(x, 2):
        wide = wide + carry.zext("i64")
    for count, out in enumerate(outs, start=1):
        out.set((wide >> 32).uge(count))
    d.set(wide.trunc("i32"))


def _wide_term(x: Form) -> Lanes:
    """Take the next operand as 64 bits: a register pair, or an immediate with its sign extended."""
    operand = x.peek()
    if operand is not None and operand.kind == "imm":
        return x.source().sext("i64")
    return x.source_pair()


def _carries(x: Form, most: int) -> list[Lanes]:
    if not x.has("X"):
        return []
    found = x.predicates(most)
    if len(found) != most:
        raise x.refuse(f"{len(found)} carries in, not {most}")
    return found


@opcode("LEA", "ULEA")
def lea(x: Form) -> None:
    """Compute `(a << s) + b`. `.HI` shifts the pair `{c, a}`, or with `.SX32` the sign-extended `a`, and adds the upper
    half of the result to `b`.
    """
    x.allow("HI", "X", "SX32")
    d = x.dest()
    outs = x.dest_predicates(1)
    first = x.peek()
    a = x.source()
    negated = first is not None and first.neg
    if first is not None and ((first.invert and outs) or ((first.neg or first.invert) and x.has("HI"))):
        raise x.refuse("a negated shifted operand with an upper half, or its complement with a carry")
    b = term(x)
    if x.has("SX32"):
        pair: Lanes | None = a.sext("i64")
    else:
        pair = join(a, x.source()) if x.has("HI") else None
    shift = x.source() & 31
    shifted = a << shift if pair is None else ((pair << shift.zext("i64")) >> 32).trunc("i32")
    # A negated operand carries as in `term`, if the shifted value is zero.
    total = ((shifted - 1).zext("i64") + 1 if negated else shifted.zext("i64")) + b
    for carry in _carries(x, 1):
        total = total + carry.zext("i64")
    for out in outs:
        out.set((total >> 32).ne(0))
    d.set(total.trunc("i32"))


@opcode("VIADD")
def viadd(x: Form) -> None:
    """Add two integers, or (`.16x2`) their lower and upper 16 bits separately."""
    x.allow("16x2")
    d = x.dest()
    packed = x.has("16x2")
    if packed and any(operand.neg for operand in x.instruction.operands):
        raise x.refuse("a negated pair")
    a, b = x.source(), x.source()
    d.set(halves(lambda one, two: one + two, a, b) if packed else a + b)


def halves(function: Callable[..., Lanes], *values: Lanes) -> Lanes:
    """Apply `function` to the lower and to the upper 16 bits of the values, and pack the two results."""
    low = function(*(value.trunc("i16") for value in values))
    high = function(*((value >> 16).trunc("i16") for value in values))
    return low.zext("i32") | (high.zext("i32") << 16)


@opcode("IABS")
def iabs(x: Form) -> None:
    """Compute the absolute value; the least integer does not change."""
    x.allow()
    d, a = x.dest(), x.source()
    d.set(a.lt(0).select(-a, a))


@opcode("VABSDIFF")
def vabsdiff(x: Form) -> None:
    """Compute `|a - b| + c`."""
    x.allow("U32")
    d, a, b, c = x.dest(), x.source(), x.source(), x.source()
    difference = a.umax(b) - a.umin(b) if x.has("U32") else a.smax(b) - a.smin(b)
    d.set(difference + c)


@opcode("VABSDIFF4")
def vabsdiff4(x: Form) -> None:
    """Compute `|a - b|` of four unsigned bytes: packed, or (`.ACC`) their sum plus `c`.

    Without `.ACC` the last operand has no effect: it would fill bytes that PTX masks out, but machine code has no mask.
    """
    x.allow("U8", "ACC")
    if not x.has("U8"):
        raise x.refuse("signed bytes")
    d, a, b, c = x.dest(), x.source(), x.source(), x.source()
    total = c if x.has("ACC") else c.like(0)
    for position in range(0, 32, 8):
        one, two = (a >> position) & 255, (b >> position) & 255
        difference = one.umax(two) - one.umin(two)
        total = total + (difference if x.has("ACC") else difference << position)
    d.set(total)
