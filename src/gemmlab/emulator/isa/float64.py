"""Arithmetic and comparison of doubles, which are stored in register pairs."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.emulator.form import Form, PredicateResult, join
from gemmlab.emulator.isa.compare import combine
from gemmlab.emulator.isa.float64_directed import fused, signed_zero_like
from gemmlab.emulator.isa.float_compare import COMBINING, COMPARISONS, compared
from gemmlab.emulator.isa.rounding import ROUNDINGS, mode_of, quiet
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes


@dataclass(frozen=True, slots=True)
class _Source:
    value: Lanes
    original: Lanes
    """The operand before `-` and `|x|` are applied; these do not change a NaN."""


def _source(x: Form) -> _Source:
    operand = x.peek()
    if operand is None or operand.kind == "imm":
        value = x.source_pair("f64")
        return _Source(value, value)
    original = join(*x.words(2)).bits("f64")
    return _Source(x.adjust(operand, original), original)


def _with_nan(result: Lanes, *sources: _Source) -> Lanes:
    """Return the bits of `result`; if it is NaN, the bits of the NaN that an H200 gives.

    An H200 gives the last operand that is NaN, made quiet; if no operand is NaN, it gives a negative quiet NaN.
    """
    nan = result.bits("i64").like(-1 << 51)
    for source in sources:
        nan = source.original.is_nan().select(quiet(source.original).bits("i64"), nan)
    return result.is_nan().select(nan, result.bits("i64"))


@opcode("DFMA")
def dfma(x: Form) -> None:
    """Compute `a * b + c`, rounded once."""
    x.allow(*ROUNDINGS)
    d, a, b, c = x.dest(), _source(x), _source(x), _source(x)
    mode = mode_of(x)
    result = fused(x, a.value, b.value, c.value, mode) if mode else a.value.fma(b.value, c.value)
    d.set(_with_nan(result, a, b, c))


@opcode("DADD")
def dadd(x: Form) -> None:
    """Compute `a + b`."""
    x.allow(*ROUNDINGS)
    d, a, b = x.dest(), _source(x), _source(x)
    mode = mode_of(x)
    result = fused(x, a.value, a.value.like(1.0), b.value, mode) if mode else a.value + b.value
    d.set(_with_nan(result, a, b))


@opcode("DMUL")
def dmul(x: Form) -> None:
    """Compute `a * b`."""
    x.allow(*ROUNDINGS)
    d, a, b = x.dest(), _source(x), _source(x)
    mode = mode_of(x)
    zero = signed_zero_like(a.value, b.value)
    d.set(_with_nan(fused(x, a.value, b.value, zero, mode) if mode else a.value * b.value, a, b))


@opcode("DSETP")
def dsetp(x: Form) -> None:
    """Compare two doubles and combine with a predicate; `.MIN` and `.MAX` set predicates for a selection."""
    x.allow(*COMPARISONS, *COMBINING, "MIN", "MAX")
    results = x.dest_predicates(2)
    a, b = x.source_pair("f64"), x.source_pair("f64")
    if x.has("MIN", "MAX"):
        _take_first(x, results, a, b)
        return
    combine(x, results, compared(x, a, b), x.predicate())


def _take_first(x: Form, results: list[PredicateResult], a: Lanes, b: Lanes) -> None:
    """Emit writes of two predicates: the first is true if the minimum or maximum is `a`, the second if both are NaN.

    Compiled `fmin` and `fmax` use them; later code makes `b` quiet if the second is true. -0 counts as less than +0.
    """
    if not x.has("AND") or len(results) != 2:
        raise x.refuse()
    negative = a.bits("i64").lt(0)
    better, sign = (a.lt(b), negative) if x.has("MIN") else (a.gt(b), ~negative)
    other = x.predicate()
    first = better | (a.eq(b) & sign) | (b.is_nan() & ~a.is_nan())
    results[0].set(first & other)
    results[1].set(a.is_nan() & b.is_nan() & other)
