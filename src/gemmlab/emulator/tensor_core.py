"""The arithmetic of a tensor core on one block of products, as far as it is known.

Products of TF32, FP16 or BF16 inputs are exact. The products of a block and the accumulator are aligned to the largest
exponent among them (a product's exponent is the sum of its factors' exponents), truncated below a fixed number of bits
and added without rounding; the sum is truncated to float32. (After M. Fasi, N. J. Higham, M. Mikaitis, S. Pranesh,
"Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 7:e330, 2021, for older architectures.)
"""

from __future__ import annotations

from gemmlab.emulator.lanes import Lanes
from gemmlab.ir.function import Function
from gemmlab.ir.types import F32, F64, I32, I64, pointer
from gemmlab.ir.values import Value

ROWS, COLUMNS = 16, 8
EXTRA_BITS = 2
"""Bits below those of a float32 that are preserved while a block is added up."""
DOT = (
    ("a", pointer(F32)),
    ("b", pointer(F32)),
    ("c", pointer(F32)),
    ("depth", I64),
    ("block", I64),
)
"""`a`: 16 x depth, `b`: depth x 8, both row-major; `c`: 16 x 8, updated in place; `block`: number of
products that are added together before rounding.
"""
_TINY = -(1 << 20)


def emit_dot(fn: Function) -> None:
    """Body of `dot(a, b, c, depth, block)`."""
    a, b, c, depth, block = fn.args
    with fn.range(ROWS) as row, fn.range(COLUMNS) as column:
        cell = c + (row * COLUMNS + column)
        with fn.range(0, depth, block) as first:
            _add_block(fn, a + (row * depth + first), b + (first * COLUMNS + column), cell, block)
    fn.finish()


def _exponent(value: Lanes) -> Lanes:
    """Exponent of a nonzero float32; very low for zero. Inputs are normal in their original format."""
    field = (value.bits("i32") >> 23) & 255
    return value.eq(0.0).select(field.like(_TINY), field - 127)


def _add_block(fn: Function, a: Value, b: Value, cell: Value, block: Value) -> None:
    start = Lanes(fn.load(cell))
    top = fn.var(I32, _exponent(start).value)
    plain = fn.var(F64, start.widen("f64").value)
    with fn.range(block) as index:
        left, right = Lanes(a[index]), Lanes(b[index * COLUMNS])
        exponent = _exponent(left) + _exponent(right)
        top.set(Lanes(top.read()).smax(exponent).value)
        plain.set((Lanes(plain.read()) + left.widen("f64") * right.widen("f64")).value)
    simple = Lanes(plain.read())
    finite = (simple - simple).eq(0.0) & Lanes(top.read()).gt(-1000)
    result = fn.var(F32, 0)
    with fn.choose(finite.value) as choice:
        with choice.yes():
            # In units of the last preserved bit every addend is an integer; their sum stays below 2^53.
            shift = Lanes(top.read()) - (23 + EXTRA_BITS)
            unit, inverse = _power(shift), _power(shift.like(0) - shift)
            total = fn.var(F64, (start.widen("f64") * inverse).call("trunc").value)
            with fn.range(block) as index:
                product = Lanes(a[index]).widen("f64") * Lanes(b[index * COLUMNS]).widen("f64")
                total.set((Lanes(total.read()) + (product * inverse).call("trunc")).value)
            result.set(_cut(Lanes(total.read()) * unit).value)
        with choice.no():
            rounded = simple.narrow("f32")
            nan = rounded.bits("i32").like(0x7FFFFFFF).bits("f32")
            result.set(rounded.is_nan().select(nan, rounded).value)
    fn.store(cell, result.read())


def _power(exponent: Lanes) -> Lanes:
    """2 to an integer power, as a double."""
    return ((exponent.sext("i64") + 1023) << 52).bits("f64")


def _cut(value: Lanes) -> Lanes:
    """A double truncated to float32; beyond the largest float32 it becomes infinity (observed on an H200)."""
    near = value.narrow("f32")
    over = near.widen("f64").call("fabs").gt(value.call("fabs")) & value.call("fabs").lt(2.0**128)
    bits = near.bits("i32")
    return over.select(bits - 1, bits).bits("f32")
