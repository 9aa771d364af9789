"""Comparison and selection of floating-point numbers of any width."""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.compare import combine
from gemmlab.emulator.isa.float32 import sources
from gemmlab.emulator.isa.rounding import NAN, flush, sign_of, whole_bits
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes

_ORDERED: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "LT": Lanes.lt,
    "LE": Lanes.le,
    "GT": Lanes.gt,
    "GE": Lanes.ge,
    "EQ": Lanes.eq,
    "NE": Lanes.ne,
}
COMPARISONS = (*_ORDERED, *(name + "U" for name in _ORDERED), "NUM", "NAN", "T", "F")
"""Names of comparisons. If an operand is NaN, `LT` to `NE` are false, and those with `U` true. `NUM`: neither is NaN;
`NAN`: one is, or both; `T`: always true; `F`: always false."""
COMBINING = ("AND", "OR", "XOR")


def compared(x: Form, a: Lanes, b: Lanes) -> Lanes:
    """Return whether the comparison that the instruction names holds."""
    name = x.needed(*COMPARISONS)
    if name in {"T", "F"}:
        return x.constant(int(name == "T"), "i1")
    unordered = a.is_nan() | b.is_nan()
    if name == "NAN":
        return unordered
    if name == "NUM":
        return ~unordered
    if name.endswith("U"):
        return _ORDERED[name.removesuffix("U")](a, b) | unordered
    return _ORDERED[name](a, b) & ~unordered


def lesser_or_greater(x: Form, a: Lanes, b: Lanes, least: Lanes) -> Lanes:
    """Return the bits of the lesser of two float32 where `least` is true, else of the greater; -0 is less than +0.

    If one is NaN, the result is the other one, or NaN if the instruction has `.NAN`.
    """
    chosen = least.select(number_first(a, b, least=True), number_first(a, b, least=False))
    return (a.is_nan() | b.is_nan()).select(chosen.like(NAN), chosen) if x.has("NAN") else chosen


def number_first(a: Lanes, b: Lanes, *, least: bool) -> Lanes:
    """Return the bits of the lesser or the greater of two float32; -0 is less than +0.

    If one is NaN, the result is the other one; if both are, `NAN`.
    """
    first, second = whole_bits(a), whole_bits(b)
    if least:
        chosen = a.lt(b).select(first, a.gt(b).select(second, first | second))
    else:
        chosen = a.gt(b).select(first, a.lt(b).select(second, first & second))
    return a.is_nan().select(b.is_nan().select(first.like(NAN), second), b.is_nan().select(first, chosen))


def with_sign_of_product(bits: Lanes, a: Lanes, b: Lanes) -> Lanes:
    """Return the bits of a magnitude with the sign of `a * b`; a NaN does not change."""
    signed = bits ^ sign_of(a) ^ sign_of(b)
    return bits.bits(a.kind).is_nan().select(bits, signed)


def joined(x: Form, truth: Lanes, other: Lanes) -> Lanes:
    """Return a comparison's result, combined with a predicate by the operation in the modifiers."""
    word = x.one_of(*COMBINING, default="AND")
    return {"AND": truth & other, "OR": truth | other, "XOR": truth ^ other}[word]


@opcode("FSETP")
def fsetp(x: Form) -> None:
    """Compare two float32, and combine the result and its opposite with a predicate."""
    x.allow(*COMPARISONS, *COMBINING, "FTZ")
    results = x.dest_predicates(2)
    a, b = sources(x, 2)
    combine(x, results, compared(x, a, b), x.predicate())


@opcode("FSET")
def fset(x: Form) -> None:
    """Compare as FSETP does and write a register: 1.0 (`.BF`) or all bits set, else 0."""
    x.allow(*COMPARISONS, *COMBINING, "FTZ", "BF")
    d = x.dest()
    a, b = sources(x, 2)
    truth = joined(x, compared(x, a, b), x.predicate())
    d.set(truth.select(x.constant(0x3F800000 if x.has("BF") else -1), 0))


@opcode("FSEL")
def fsel(x: Form) -> None:
    """Select the first operand if the predicate is true, else the second."""
    x.allow("FTZ")
    d = x.dest()
    a, b = sources(x, 2)
    d.set(x.predicate().select(a, b))


@opcode("FMNMX")
def fmnmx(x: Form) -> None:
    """Take the lesser of two if the last operand, a predicate, is true, else the greater.

    `.XORSIGN` gives the result the sign of the product; its operands are printed as absolute values.
    """
    x.allow("FTZ", "NAN", "XORSIGN")
    d = x.dest()
    if not x.has("XORSIGN"):
        a, b = sources(x, 2)
        d.set(lesser_or_greater(x, a, b, x.predicate()))
        return
    (a, a_source), (b, b_source) = _with_original(x), _with_original(x)
    d.set(with_sign_of_product(lesser_or_greater(x, a, b, x.predicate()), a_source, b_source))


def _with_original(x: Form) -> tuple[Lanes, Lanes]:
    operand = x.peek()
    original = x.words(1)[0].bits("f32")
    if operand is None:
        raise x.refuse("too few operands")
    value = x.adjust(operand, original)
    return flush(value) if x.has("FTZ") else value, original


@opcode("FCHK")
def fchk(x: Form) -> None:
    """Test whether `a / b` needs the slow path of the division.

    The fast path multiplies by a reciprocal and corrects the quotient twice. It is exact if no operand is special, the
    reciprocal and the quotient are normal numbers, and the remainders have no bits below the least denormal. It is not
    known in which other cases the hardware takes the slow path; the quotient is the same on both.
    """
    x.allow("DIVIDE")
    (result,) = x.dest_predicates(1, least=1)
    a, b = (value.bits("i32").lshr(23) & 0xFF for value in (x.source("f32"), x.source("f32")))
    quotient = a - b
    ordinary = a.gt(25) & a.lt(255) & b.gt(0) & b.lt(253) & quotient.lt(126) & quotient.gt(-125)
    result.set(~ordinary)
