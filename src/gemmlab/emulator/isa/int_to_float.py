"""Conversions from integers to floating point."""

from __future__ import annotations

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.float_to_int import FLOATS, INTEGERS
from gemmlab.emulator.isa.halves import to_bfloat, to_half
from gemmlab.emulator.isa.rounding import ROUNDINGS, mode_of, narrow, to_odd, two_sum, whole_bits
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes

_PARTS = {"B0": 0, "B1": 8, "B2": 16, "B3": 24, "H0": 0, "H1": 16}


@opcode("I2F", "I2FP")
def i2f(x: Form) -> None:
    """Convert an integer, rounded to nearest even, or (`.RZ`, `.RM`, `.RP`) in the named direction."""
    x.allow(*FLOATS, *INTEGERS, *ROUNDINGS, suffixes=tuple(_PARTS))
    d = x.dest()
    total, lost = _doubles(x, x.one_of(*INTEGERS, default="S32"))
    kind, mode = x.one_of(*FLOATS, default="F32"), mode_of(x)
    if kind == "F64":
        d.set(_directed(total, lost, mode))
        return
    single = to_odd(total, lost)
    if kind == "F32":
        d.set(narrow(single, mode))
    else:
        d.set((to_bfloat if kind == "BF16" else to_half)(narrow(single, "ODD"), mode))


def _doubles(x: Form, name: str) -> tuple[Lanes, Lanes]:
    """Take the next operand, an integer; return it as (float64, error of the conversion)."""
    signed, bits = name[0] == "S", int(name[1:])
    if bits == 64:
        value = x.source_pair()
        upper = (value >> 32).trunc("i32").to_float("f64", signed=signed)
        return two_sum(upper * 2.0**32, value.trunc("i32").to_float("f64", signed=False))
    operand = x.peek()
    value = x.source()
    if bits < 32:
        shift = _PARTS[next(iter(operand.suffix), "H0")] if operand is not None else 0
        value = value << (32 - bits - shift) if shift < 32 - bits else value
        value = value.arithmetic_shift(32 - bits) if signed else value >> (32 - bits)
    exact = value.to_float("f64", signed=signed)
    return exact, exact.like(0.0)


def _directed(total: Lanes, lost: Lanes, mode: str) -> Lanes:
    """Return `total + lost` rounded to float64 in the direction `mode`; `total` is the sum rounded to nearest.

    The numbers next to `total` are finite, because integers are far from the limits of float64.
    """
    if not mode:
        return total
    bits = whole_bits(total)
    outwards, inwards = (bits + 1).bits("f64"), (bits - 1).bits("f64")
    positive = total.gt(0.0)
    lower, upper = positive.select(inwards, outwards), positive.select(outwards, inwards)
    below, above = lost.lt(0.0), lost.gt(0.0)
    match mode:
        case "RM":
            return below.select(lower, total)
        case "RP":
            return above.select(upper, total)
        case _:
            return ((positive & below) | (total.lt(0.0) & above)).select(inwards, total)
