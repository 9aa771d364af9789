"""The sums of multiplications on tensor cores, with the bits of the hardware as far as its rule is known.

Products are exact. The products of one block of k (32 bytes a row; the callers choose less for older tensor cores and
for 8-bit floats of one warp) and the accumulator are aligned to the largest exponent among them. The exponent of a
product is the sum of its factors' exponents; a denormal number has the exponent of the least normal one. Each addend is
truncated to `EXTRA` bits below one unit of the largest exponent, and the addends are summed exactly. The sum is
truncated to float32, or for 8-bit inputs to 13 bits behind the point; sums in FP16 are rounded to nearest.
(P. Xie, Y. Wang, F. Yang, M. Yang, "MMA-Sim: bit-accurate reference model of tensor cores and matrix cores",
arXiv:2511.10909.)
"""

from __future__ import annotations

from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.small_floats import FP16, half_of, narrowed
from gemmlab.emulator.wgmma_layout import ROWS, SUMS
from gemmlab.ir.function import Function
from gemmlab.ir.types import F32, I32, I64, pointer, vector

EXTRA, EXTRA_OLD, EXTRA_NARROW = 25, 24, 13
"""Bits behind the point of each addend in a block's sum: in general, before sm_90, and for 8-bit inputs."""
WIDE = 8
"""Columns whose sums are computed as one vector."""
LEAST, LEAST_HALF = -126, -14
"""Exponent of a denormal accumulator in float32 and FP16."""
LEAST_OF_ALL = -133
"""Exponent of an accumulator of zero, and so the least exponent of any alignment: measured on an H200."""
SUM = (
    ("factors_a", pointer(I32)), ("exponents_a", pointer(I32)), ("factors_b", pointer(I32)),
    ("exponents_b", pointer(I32)), ("sums", pointer(I32)), ("depth", I64), ("columns", I64), ("kind", I64),
)  # fmt: skip
"""Arguments. A has 16 rows of `depth`, B `depth` rows of `columns`; `sums` has 16 rows of `columns` and is updated.
`kind`: one of `SUMS`, plus `NARROW` for 8-bit floats, `OLD` for tensor cores before sm_90, and `SATURATE` for integers
that stop at the ends of their range.
"""
NARROW, SATURATE, OLD = 16, 32, 64


def _power(exponent: Lanes) -> Lanes:
    """Return 2 to a power of at most 127, as a float32; 0 for powers below the least normal number."""
    return ((exponent + 127).smax(0) << 23).bits("f32")


def _split_sum(value: Lanes, half: Lanes) -> tuple[Lanes, Lanes]:
    """Return an accumulator as (factor, exponent); `half` is true if its type is FP16.

    For infinity and NaN the factor is the number itself.
    """
    bits = value.bits("i32")
    field = (bits >> 23) & 255
    magnitude = value.call("fabs")
    least = half.select(field.like(LEAST_HALF), LEAST)
    tiny = magnitude.lt(half.select(value.like(2.0**LEAST_HALF), 2.0**LEAST))
    # The value is scaled in two steps, because the power may exceed the range of float32.
    scaled = value * _power(-(least.arithmetic_shift(1))) * _power(-(least.arithmetic_shift(1)))
    normal = ((bits & -0x7F800001) | (127 << 23)).bits("f32")
    exponent = value.eq(0.0).select(field.like(LEAST_OF_ALL), tiny.select(least, field - 127))
    special = field.eq(255)
    return special.select(value, tiny.select(scaled, normal)), special.select(field.like(LEAST), exponent)


def emit_sum_floats(fn: Function) -> None:
    """Emit the body of `sum_floats(...)`: add the products of one block of k to float accumulators (arguments: `SUM`).

    FP16 accumulators are passed as float32 numbers.
    """
    factors_a, exponents_a, factors_b, exponents_b, sums, depth, columns, kind = fn.args
    half = Lanes(kind & 15).eq(SUMS["F16"]).splat(WIDE)
    narrow = (Lanes(kind) & NARROW).ne(0)
    usual = (Lanes(kind) & OLD).ne(0).select(Lanes(fn.constant(EXTRA_OLD, I32)), EXTRA)
    extra = narrow.select(usual.like(EXTRA_NARROW), usual)
    lanes_of_i32, lanes_of_f32 = vector(I32, WIDE), vector(F32, WIDE)
    with fn.range(ROWS) as row, fn.range(0, columns, WIDE) as column:
        here = sums + (row * columns + column)
        old = Lanes(fn.load(here, WIDE)).bits("f32")
        factor, exponent = _split_sum(old, half)
        top = fn.var(lanes_of_i32, exponent.value)
        with fn.range(depth) as k:
            power = Lanes(exponents_a[row * depth + k]).splat(WIDE) + Lanes(
                fn.load(exponents_b + (k * columns + column), WIDE)
            )
            top.set(Lanes(top.read()).smax(power).value)
        highest = Lanes(top.read())
        shift = extra.splat(WIDE) - highest
        total = fn.var(lanes_of_i32, fn.constant(0, lanes_of_i32))
        plain = fn.var(lanes_of_f32, factor.value)
        with fn.range(depth) as k:
            at_a, at_b = row * depth + k, k * columns + column
            power = Lanes(exponents_a[at_a]).splat(WIDE) + Lanes(fn.load(exponents_b + at_b, WIDE)) + shift
            left = Lanes(fn.load(factors_a + at_a)).bits("f32").splat(WIDE)
            product = left * Lanes(fn.load(factors_b + at_b, WIDE)).bits("f32")
            plain.set((Lanes(plain.read()) + product).value)
            total.set((Lanes(total.read()) + (product * _power(power)).to_int("i32", signed=True)).value)
        # Sixteen products below 4 fill 31 bits, so the accumulator is added separately.
        own = (factor * _power(exponent + shift)).to_int("i32", signed=True)
        exact = Lanes(total.read()).to_float("f64", signed=True) + own.to_float("f64", signed=True)
        value = exact * _double_power(-shift)
        rough = Lanes(plain.read())
        ordinary = (rough - rough).eq(0.0)
        cut = _truncated(value)
        wide = narrow.splat(WIDE).select(cut.bits("i32") & -1024, cut.bits("i32")).bits("f32")
        rounded = half.select(_nearest_half(value, cut), wide)
        # A result of zero is positive, even if a negative sum was truncated to zero.
        result = rounded.eq(0.0).select(rounded.like(0.0), rounded)
        nan = rough.bits("i32").like(0x7FFFFFFF).bits("f32")
        special = rough.is_nan().select(nan, rough)
        fn.store(here, ordinary.select(result, special).bits("i32").value)
    fn.finish()


def _double_power(exponent: Lanes) -> Lanes:
    return ((exponent.sext("i64") + 1023) << 52).bits("f64")


def _truncated(value: Lanes) -> Lanes:
    """Return float64 values truncated to float32; those of 2^128 and more in magnitude become infinite."""
    near = value.narrow("f32")
    size = value.call("fabs")
    over = near.widen("f64").call("fabs").gt(size) & size.lt(2.0**128)
    bits = near.bits("i32")
    return over.select(bits - 1, bits).bits("f32")


def _nearest_half(value: Lanes, cut: Lanes) -> Lanes:
    """Return float64 values rounded to the nearest FP16 number, as float32.

    `cut` has the values truncated to float32. If truncation changed a value, its last bit is set (a sticky bit), which
    prevents double rounding.
    """
    inexact = cut.widen("f64").ne(value) & (cut - cut).eq(0.0)
    odd = inexact.select(cut.bits("i32") | 1, cut.bits("i32")).bits("f32")
    return half_of(narrowed(odd, FP16), 0)


def emit_sum_integers(fn: Function) -> None:
    """Emit the body of `sum_integers(...)` (arguments: `SUM`): int32 sums that wrap, or saturate (`SATURATE`)."""
    factors_a, _exponents_a, factors_b, _exponents_b, sums, depth, columns, kind = fn.args
    with fn.range(ROWS) as row, fn.range(0, columns, WIDE) as column:
        here = sums + (row * columns + column)
        old = Lanes(fn.load(here, WIDE))
        total = fn.var(vector(I32, WIDE), fn.constant(0, vector(I32, WIDE)))
        with fn.range(depth) as k:
            left = Lanes(fn.load(factors_a + (row * depth + k))).splat(WIDE)
            right = Lanes(fn.load(factors_b + (k * columns + column), WIDE))
            total.set((Lanes(total.read()) + left * right).value)
        products = Lanes(total.read())
        saturating = (Lanes(kind) & SATURATE).ne(0).splat(WIDE)
        fn.store(here, saturating.select(old.call("sadd.sat", products), old + products).value)
    fn.finish()
