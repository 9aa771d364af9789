"""Shifts of 32 bits, and funnel shifts of register pairs."""

from __future__ import annotations

from gemmlab.emulator.form import Form, join
from gemmlab.emulator.isa.table import opcode


@opcode("SHF", "USHF")
def shf(x: Form) -> None:
    """Shift the pair `{high, low}`; the result is its lower word, with `.HI` its upper word.

    The amount is clamped to the width of the type; with `.W` it is taken modulo the width. Right shifts of signed types
    repeat the sign bit of `high`.
    """
    x.allow("L", "R", "W", "HI", "U32", "S32", "U64", "S64")
    d, low, amount, high = x.dest(), x.source(), x.source(), x.source()
    width = 64 if x.has("U64", "S64") else 32
    amount = amount & (width - 1) if x.has("W") else amount.umin(width)
    if x.has("L") and not x.has("HI"):
        d.set(low.shl(amount))
        return
    right = x.has("R")
    shift = "shl" if not right else "ashr" if x.has("S32", "S64") else "lshr"
    if right and x.has("HI"):
        d.set(getattr(high, shift)(amount))
        return
    pair = getattr(join(low, high), shift)(amount.zext("i64"))
    d.set((pair >> 32).trunc("i32") if x.has("HI") else pair.trunc("i32"))
