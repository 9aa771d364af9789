"""Values that atomic operations write."""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.emulator.isa.halves import to_bfloat
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.small_floats import bfloat_of, half_of, pack_halves

FLOATS = ("F32", "F64", "F16x2", "BF16x2")
"""Types of floating-point numbers, in the words of nvdisasm. Only their sums are compiled for sm_80 to sm_90."""


def float_sum(kind: str, old: Lanes, new: Lanes, *, flush: bool) -> Lanes:
    """Return the bits of the sum of two numbers, or pairs of numbers, of a type in `FLOATS`."""
    if kind in {"F32", "F64"}:
        return _float_add(kind.lower(), old, new, flush=flush)
    if kind == "F16x2":
        # A float32 sum has so many bits that rounding it to 16 bits gives the correctly rounded sum.
        return pack_halves(*(half_of(old, part) + half_of(new, part) for part in (0, 1)))
    low, high = (to_bfloat(bfloat_of(old, part) + bfloat_of(new, part)) for part in (0, 1))
    return low | (high << 16)


def combined(name: str, old: Lanes, values: list[Lanes], *, signed: bool) -> Lanes:
    """Return what an operation on integers makes of a cell's old value."""
    new = values[0]
    simple: dict[str, Callable[[], Lanes]] = {
        "ADD": lambda: old + new,
        "AND": lambda: old & new,
        "OR": lambda: old | new,
        "XOR": lambda: old ^ new,
        "EXCH": lambda: new,
        "MIN": lambda: old.smin(new) if signed else old.umin(new),
        "MAX": lambda: old.smax(new) if signed else old.umax(new),
        "INC": lambda: old.uge(new).select(old.like(0), old + 1),
        "DEC": lambda: (old.eq(0) | old.ugt(new)).select(new, old - 1),
        "CAS": lambda: old.eq(new).select(values[-1], old),
        "CAST": lambda: old.eq(new).select(values[-1], old),
    }
    return simple[name]()


def _float_add(kind: str, old: Lanes, new: Lanes, *, flush: bool) -> Lanes:
    parts = [_flushed(value.bits(kind)) if flush else value.bits(kind) for value in (old, new)]
    total = parts[0] + parts[1]
    total = _flushed(total) if flush else total
    return total.is_nan().select(_quiet(total), total).bits(old.kind)


def _quiet(total: Lanes) -> Lanes:
    bits = 0x7FFFFFFF if total.kind == "f32" else 0x7FFFFFFFFFFFFFFF
    integer = total.bits("i32" if total.kind == "f32" else "i64")
    return integer.like(bits).bits(total.kind)


def _flushed(value: Lanes) -> Lanes:
    """Return float32 values with denormals replaced by zeros of the same sign."""
    bits = value.bits("i32")
    tiny = (bits & 0x7F800000).eq(0)
    return tiny.select(bits & -0x80000000, bits).bits("f32")
