"""Conversions from floating point to integers."""

from __future__ import annotations

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.rounding import flush
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.small_floats import bfloat_of, half_of

TO_WHOLE = {"FLOOR": "floor", "CEIL": "ceil", "TRUNC": "trunc"}
"""Modifier -> LLVM intrinsic that rounds to a whole number. Without a modifier, rounding is to nearest even."""
INTEGERS = tuple(sign + str(bits) for sign in "SU" for bits in (8, 16, 32, 64))
FLOATS = ("F16", "BF16", "F32", "F64")
PARTS = ("H0", "H1", "H0_H0", "H1_H1")


def whole(x: Form, value: Lanes) -> Lanes:
    """Return a float rounded to a whole number, in the direction of the instruction's modifier."""
    return value.call(TO_WHOLE.get(x.one_of(*TO_WHOLE), "roundeven"))


def source_of(x: Form, kind: str) -> Lanes:
    """Take the next operand, in the format `kind`, as float32 or (`F64`) float64; `.FTZ` flushes denormals of F32."""
    if kind == "F64":
        return x.source_pair("f64")
    if kind == "F32":
        value = x.source("f32")
        return flush(value) if x.has("FTZ") else value
    operand = x.peek()
    (word,) = x.words(1)
    if operand is None:
        raise x.refuse("too few operands")
    upper = int(any(name.startswith("H1") for name in operand.suffix))
    return x.adjust(operand, bfloat_of(word, upper) if kind == "BF16" else half_of(word, upper))


def saturated_to(value: Lanes, name: str, *, nan_is_zero: bool) -> Lanes:
    """Return a whole float64 clamped to the range of a type (`"S8"` .. `"U64"`), as an i64 for 64 bits, else as an i32.

    NaN gives 0 or, without `nan_is_zero`, the type's highest bit.
    """
    signed, bits = name[0] == "S", int(name[1:])
    kind = "i64" if bits == 64 else "i32"
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    below, above = value.lt(float(low)), value.ge(float(high + 1))
    # The conversion is undefined out of range; those lanes are replaced below.
    inside = (below | above | value.is_nan()).select(0.0, value)
    number = inside.to_int("i64", signed=signed or bits < 64).trunc(kind)
    nan = 0 if nan_is_zero else 1 << (bits - 1)
    pattern = {
        name: _pattern(item, signed=signed, bits=bits) for name, item in (("low", low), ("high", high), ("nan", nan))
    }
    number = below.select(pattern["low"], above.select(pattern["high"], number))
    return value.is_nan().select(number.like(pattern["nan"]), number).bits(kind)


def _pattern(item: int, *, signed: bool, bits: int) -> int:
    """Return an integer of a type, extended to its register's width, as a signed number with the same bits."""
    if signed and item >> (bits - 1) == 1:
        item -= 1 << bits
    width = max(bits, 32)
    return item - (1 << width) if item >> (width - 1) == 1 else item


@opcode("F2I")
def f2i(x: Form) -> None:
    """Round to a whole number, then clamp to the range of the type.

    NaN gives 0 (`.NTZ`), else the type's highest bit (PTX, `cvt`).
    """
    x.allow(*INTEGERS, *FLOATS, *TO_WHOLE, "FTZ", "NTZ", suffixes=PARTS)
    d = x.dest()
    value = whole(x, source_of(x, x.one_of(*FLOATS, default="F32")).widen("f64"))
    d.set(saturated_to(value, x.one_of(*INTEGERS, default="S32"), nan_is_zero=x.has("NTZ")))


@opcode("F2IP")
def f2ip(x: Form) -> None:
    """Convert two float32 to the two low bytes of the result, the second one lowest; the lower half of `c` is above."""
    x.allow("U8", "S8", "F32", *TO_WHOLE, "FTZ", "NTZ")
    d = x.dest()
    name = x.one_of("U8", "S8")
    values = [whole(x, source_of(x, "F32").widen("f64")) for _ in range(2)]
    high, low = (saturated_to(value, name, nan_is_zero=x.has("NTZ")) & 0xFF for value in values)
    d.set(low | (high << 8) | (x.source() << 16))
