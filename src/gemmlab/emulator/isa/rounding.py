"""Rounding in any direction, by exact arithmetic: the host keeps rounding to nearest even.

A sum is split without error into its rounded value and what rounding lost. From both follows the value rounded to odd
(towards zero, then the last bit set if anything was lost), and a value rounded to odd rounds once more, to at least two
bits less, in any direction, as the exact one would.
"""

from __future__ import annotations

from gemmlab.emulator.form import Form
from gemmlab.emulator.lanes import Lanes

MODES = ("RZ", "RM", "RP")
"""Towards zero, minus and plus infinity; to nearest even has no name, or `RN`."""
ROUNDINGS = ("RN", *MODES)
NAN = 0x7FFFFFFF
"""The NaN that float32 arithmetic makes, whatever NaN went in. Doubles keep theirs: see `quiet`."""
_SIGN = {"f32": -0x80000000, "f64": -0x8000000000000000}
_LEAST_NORMAL = {"f32": 2.0**-126, "f64": 2.0**-1022}


def mode_of(x: Form) -> str:
    """The direction an instruction rounds in, `""` for nearest even."""
    return x.one_of(*MODES)


def whole_bits(value: Lanes) -> Lanes:
    """A float's bits as an integer."""
    return value.bits("i32" if value.kind == "f32" else "i64")


def sign_of(value: Lanes) -> Lanes:
    """A float's sign bit alone."""
    return whole_bits(value) & _SIGN[value.kind]


def two_sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """`a + b` rounded to nearest, and exactly what that lost; not a number where the sum is not finite."""
    ordered = a.call("fabs").ge(b.call("fabs"))
    big, small = ordered.select(a, b), ordered.select(b, a)
    total = big + small
    return total, small - (total - big)


def to_odd(total: Lanes, lost: Lanes) -> Lanes:
    """A sum and its error as one number of the same kind, rounded to odd."""
    bits = whole_bits(total)
    grows = (whole_bits(lost) ^ bits).ge(0)
    even = (bits & 1).eq(0)
    inexact = lost.lt(0.0) | lost.gt(0.0)
    return (inexact & even).select(grows.select(bits + 1, bits - 1), bits).bits(total.kind)


def step(bits: Lanes, rounded: Lanes, exact: Lanes, mode: str) -> Lanes:
    """`bits`, an exact number rounded to nearest, moved to the neighbour that `mode` (or `"ODD"`) asks for.

    `rounded` is what the bits stand for, of the kind of `exact`; beyond the largest finite number lies infinity.
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
    """float64 as float32, rounded in the direction of `mode`, or to odd."""
    rounded = value.narrow("f32")
    if not mode:
        return rounded
    return step(rounded.bits("i32"), rounded.widen("f64"), value, mode).bits("f32")


def flush(value: Lanes) -> Lanes:
    """Denormal numbers as zeros of the same sign."""
    tiny = value.call("fabs").lt(_LEAST_NORMAL[value.kind])
    return tiny.select(sign_of(value), whole_bits(value)).bits(value.kind)


def canonical(value: Lanes) -> Lanes:
    """Every NaN of a float32 as the one that the hardware makes."""
    bits = whole_bits(value)
    return value.is_nan().select(bits.like(NAN), bits).bits("f32")


def quiet(value: Lanes) -> Lanes:
    """A NaN with the bit set that tells quiet from signalling ones; its others stay."""
    bits = whole_bits(value)
    bit = 1 << (22 if value.kind == "f32" else 51)
    return value.is_nan().select(bits | bit, bits).bits(value.kind)


def saturated(value: Lanes) -> Lanes:
    """Moved into 0 to 1; NaN becomes +0, and so does -0."""
    return value.gt(0.0).select(value.lt(1.0).select(value, 1.0), 0.0)
