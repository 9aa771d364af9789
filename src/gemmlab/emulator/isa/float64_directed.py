"""Directed rounding of `a * b + c` of doubles, by integers that are wide enough for the exact sum.

Error-free transformations would fail if the error is below the least denormal; integers do not.
"""

from __future__ import annotations

from math import inf

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.each_lane import each_lane, row
from gemmlab.emulator.isa.rounding import whole_bits
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES
from gemmlab.ir.types import I64

_FRACTION = (1 << 52) - 1
_INFINITY = 0x7FF0000000000000
_GUARD = 64
"""Bits below the product's last one; an addend far below the product sets the lowest of them."""
_FAR = 137
"""The largest distance in bits of an addend's last bit above the product's; beyond it the product only sets a bit."""


def fused(x: Form, a: Lanes, b: Lanes, c: Lanes, mode: str) -> Lanes:
    """Return `a * b + c` (float64) rounded once: towards zero (`RZ`), down (`RM`) or up (`RP`).

    If an operand is infinite or NaN, the result is the host's; a NaN has the host's bits.
    """
    rows = [row(x, value.bits("i64")) for value in (a, b, c)]
    results = x.fn.scratch(I64, LANES)
    with each_lane(x) as lane:
        results[lane] = _of_finite(*(Lanes(each[lane]) for each in rows), mode=mode).value
    exact = Lanes(x.fn.load(results, LANES)).bits("f64")
    nearest = a.fma(b, c)
    special = ~(a.call("fabs").lt(inf) & b.call("fabs").lt(inf) & c.call("fabs").lt(inf))
    return special.select(nearest, exact)


def _of_finite(a: Lanes, b: Lanes, c: Lanes, *, mode: str) -> Lanes:
    product = _mantissa(a).zext("i128") * _mantissa(b).zext("i128")
    addend = _mantissa(c)
    product_negative, addend_negative = (a ^ b).lt(0), c.lt(0)
    # The exponent of a zero must not affect the position of the sum.
    unit, addend_unit = _unit(a) + _unit(b), _unit(c)
    unit = product.eq(0).select(addend_unit, unit)
    above = addend.eq(0).select(unit, addend_unit) - unit
    unit = unit + (above - _FAR).smax(0) - _GUARD

    first = product.zext("i256") << _GUARD
    second = _placed(addend, above.smin(_FAR) + _GUARD)
    total = product_negative.select(-first, first) + addend_negative.select(-second, second)
    negative = total.lt(0)
    away = {"RM": negative, "RP": ~negative, "RZ": negative & ~negative}[mode]
    bits = _rounded(negative.select(-total, total), unit, away)
    zero_negative = product_negative | addend_negative if mode == "RM" else product_negative & addend_negative
    sign = total.eq(0).select(zero_negative, negative)
    return bits | sign.zext("i64") << 63


def _mantissa(bits: Lanes) -> Lanes:
    return (bits & _FRACTION) | (_exponent(bits).ne(0).zext("i64") << 52)


def _exponent(bits: Lanes) -> Lanes:
    return (bits >> 52) & 0x7FF


def _unit(bits: Lanes) -> Lanes:
    """Return log2 of the value of the mantissa's last bit."""
    return _exponent(bits).umax(1) - 1075


def _placed(mantissa: Lanes, shift: Lanes) -> Lanes:
    """Return `mantissa` as i256, shifted left by `shift`, right if `shift` is negative.

    If ones are lost, the last bit is set.
    """
    right = (shift.like(0) - shift).smax(0).smin(63)
    quotient = mantissa >> right
    marked = quotient | (quotient << right).ne(mantissa).zext("i64")
    return marked.zext("i256") << shift.smax(0).zext("i256")


def _rounded(magnitude: Lanes, unit: Lanes, away: Lanes) -> Lanes:
    """Return the bits of the double `magnitude * 2**unit`, truncated or (`away`) rounded away from zero."""
    used = (magnitude.like(256) - magnitude.call_flag("ctlz", flag=False)).trunc("i64")
    shift = (used - 53).smax(unit.like(-1074) - unit)
    right = shift.smax(0).smin(255).zext("i256")
    cut = magnitude >> right
    inexact = (cut << right).ne(magnitude)
    left = (shift.like(0) - shift).smax(0).zext("i256")
    mantissa = (cut << left).trunc("i64") + (inexact & away).zext("i64")
    # The mantissa's leading bit (bit 52) adds one to the exponent field. A denormal has no such bit; its field is 0.
    bits = ((unit + shift + 1074).smin(2046) << 52) + mantissa
    overflow = away.select(bits.like(_INFINITY), _INFINITY - 1)
    return magnitude.eq(0).select(bits.like(0), bits.uge(_INFINITY).select(overflow, bits))


def signed_zero_like(a: Lanes, b: Lanes) -> Lanes:
    """Return the zero with the sign of `a * b`: adding it does not change the sign of the product."""
    return ((whole_bits(a) ^ whole_bits(b)) & (-1 << 63)).bits("f64")
