"""Rounding in any direction by exact arithmetic on a host that always rounds to nearest even.

A sum is split without error into its rounded value and the rounding error. Both together give the value rounded to odd:
truncated, with the last bit set if the value is not exact. If that is rounded again, in any direction and to at least
two bits less, the result is the same as for the exact value.
"""

from __future__ import annotations

from gemmlab.emulator.form import Form
from gemmlab.emulator.lanes import Lanes

MODES = ("RZ", "RM", "RP")
"""Modifiers for rounding towards zero, minus infinity and plus infinity; nearest even has no modifier, or `RN`."""
ROUNDINGS = ("RN", *MODES)
NAN = 0x7FFFFFFF
"""The NaN that float32 arithmetic gives for any NaN operand. Float64 arithmetic returns an operand's NaN (`quiet`)."""
_SIGN = {"f32": -0x80000000, "f64": -0x8000000000000000}
_LEAST_NORMAL = {"f32": 2.0**-126, "f64": 2.0**-1022}


def mode_of(x: Form) -> str:
    """Return the rounding direction of an instruction, `""` for nearest even."""
    return x.one_of(*MODES)


def whole_bits(value: Lanes) -> Lanes:
    """Return a float's bits as an integer of the same width."""
    return value.bits("i32" if value.kind == "f32" else "i64")


def sign_of(value: Lanes) -> Lanes:
    """Return a float's bits with all but the sign bit set to 0."""
    return whole_bits(value) & _SIGN[value.kind]


def two_sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """Return (`a + b` rounded to nearest, exact rounding error).

    The error is NaN or infinite if the sum is not finite.
    """
    ordered = a.call("fabs").ge(b.call("fabs"))
    big, small = ordered.select(a, b), ordered.select(b, a)
    total = big + small
    return total, small - (total - big)


def to_odd(total: Lanes, lost: Lanes) -> Lanes:
    """Return a sum plus its error as one number of the same kind, rounded to odd."""
    bits = whole_bits(total)
    grows = (whole_bits(lost) ^ bits).ge(0)
    even = (bits & 1).eq(0)
    inexact = lost.lt(0.0) | lost.gt(0.0)
    return (inexact & even).select(grows.select(bits + 1, bits - 1), bits).bits(total.kind)


def step(bits: Lanes, rounded: Lanes, exact: Lanes, mode: str) -> Lanes:
    """Return the bits of `exact` rounded in the direction `mode`, which may also be `"ODD"`.

    `bits` are those of the number rounded to nearest, and `rounded` is their value in the kind of `exact`. They are
    moved to the next number if needed; the one after the largest finite number is infinity.
    """
    too_far = rounded.call("fabs").gt(exact.call("fabs"))
    too_near = rounded.call("fabs").lt(exact.call("fabs"))
    negative = exact.lt(0.0)
    if mode == "RZ":
        return too_far.select(bits - 1, bits)
    if mode == "ODD":
        moved = too_far.select(bits - 1, too_near.select(bits + 1, bits))
        return (bits & 1).eq(0).select(moved, bits)
    outwards, inwards = (negative, ~negative) if mode == "RM" else (~negative, negative)
    return (too_near & outwards).select(bits + 1, (too_far & inwards).select(bits - 1, bits))


def narrow(value: Lanes, mode: str = "") -> Lanes:
    """Return a float64 as float32, rounded in the direction `mode`, or to odd (`"ODD"`)."""
    rounded = value.narrow("f32")
    if not mode:
        return rounded
    return step(rounded.bits("i32"), rounded.widen("f64"), value, mode).bits("f32")


def flush(value: Lanes) -> Lanes:
    """Return a value with denormals replaced by zeros of the same sign."""
    tiny = value.call("fabs").lt(_LEAST_NORMAL[value.kind])
    return tiny.select(sign_of(value), whole_bits(value)).bits(value.kind)


def canonical(value: Lanes) -> Lanes:
    """Return a float32 with every NaN replaced by the one that the hardware makes (`NAN`)."""
    bits = whole_bits(value)
    return value.is_nan().select(bits.like(NAN), bits).bits("f32")


def quiet(value: Lanes) -> Lanes:
    """Return a value with every NaN made quiet; the other bits of a NaN do not change."""
    bits = whole_bits(value)
    bit = 1 << (22 if value.kind == "f32" else 51)
    return value.is_nan().select(bits | bit, bits).bits(value.kind)


def saturated(value: Lanes) -> Lanes:
    """Return a value clamped to the range 0 to 1; NaN and -0 become +0."""
    return value.gt(0.0).select(value.lt(1.0).select(value, 1.0), 0.0)
