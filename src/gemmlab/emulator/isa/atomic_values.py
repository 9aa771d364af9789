"""Values that atomic operations write."""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.emulator.isa.float_compare import number_first
from gemmlab.emulator.isa.halves import to_bfloat
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.small_floats import bfloat_of, half_of, pack_halves

FLOATS = {"F32": ("ADD",), "F64": ("ADD",), "F16x2": ("ADD", "MIN", "MAX"), "BF16x2": ("ADD", "MIN", "MAX")}
"""Types of floating-point numbers, in the words of nvdisasm -> operations on them."""


def float_combined(name: str, kind: str, old: Lanes, new: Lanes, *, flush: bool) -> Lanes:
    """Return the bits that `ADD`, `MIN` or `MAX` makes of two numbers, or pairs of numbers, of a type in `FLOATS`.

    `MIN` and `MAX` take the number if the other one is NaN, and 0x7FFF of two NaN, as an H200 does. `flush` replaces
    denormals by zeros in F32, and has no effect in types of 16 bits; F64 must not have it.
    """
    if kind in {"F32", "F64"}:
        return _float_add(kind.lower(), old, new, flush=flush)
    widen = half_of if kind == "F16x2" else bfloat_of
    low, high = (_float32(name, widen(old, part), widen(new, part)) for part in (0, 1))
    # A float32 sum has so many bits that rounding it to 16 bits gives the correctly rounded sum.
    return pack_halves(low, high) if kind == "F16x2" else to_bfloat(low) | (to_bfloat(high) << 16)


def _float32(name: str, a: Lanes, b: Lanes) -> Lanes:
    return a + b if name == "ADD" else number_first(a, b, least=name == "MIN").bits("f32")


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
