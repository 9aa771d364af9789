"""Bit fields, bit counts, and reversal of bits."""

from __future__ import annotations

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes


@opcode("BMSK", "UBMSK")
def bmsk(x: Form) -> None:
    """Make a mask of `width` ones from bit `start` on; both are clamped to 32, or (`.W`) taken modulo 32."""
    x.allow("W")
    d, start, width = x.dest(), _amount(x), _amount(x)
    d.set(_ones(width).shl(start))


@opcode("SGXT", "USGXT")
def sgxt(x: Form) -> None:
    """Extend the lowest `width` bits by sign or (`.U32`) with zeros; `width` as in BMSK, a width of 0 gives 0."""
    x.allow("W", "U32")
    d, value, width = x.dest(), x.source(), _amount(x)
    field = value & _ones(width)
    if not x.has("U32"):
        sign = (value.lshr(width - 1) & 1).ne(0)
        field = sign.select(field | ~_ones(width), field)
    d.set(field)


def _amount(x: Form) -> Lanes:
    amount = x.source()
    return amount & 31 if x.has("W") else amount


def _ones(width: Lanes) -> Lanes:
    return ~width.like(-1).shl(width)


@opcode("FLO", "UFLO")
def flo(x: Form) -> None:
    """Find the highest set bit; for a signed number, the highest bit that differs from the sign.

    The result is its position, with `.SH` its distance from bit 31, and all ones if there is no such bit.
    """
    x.allow("U32", "SH")
    d, value = x.dest(), x.source()
    if not x.has("U32"):
        value = value ^ value.arithmetic_shift(31)
    distance = value.call_flag("ctlz", flag=False)
    d.set(value.eq(0).select(-1, distance if x.has("SH") else distance ^ 31))


@opcode("POPC", "UPOPC")
def popc(x: Form) -> None:
    """Count the bits that are set."""
    x.allow()
    d, value = x.dest(), x.source()
    d.set(value.call("ctpop"))


@opcode("BREV", "UBREV")
def brev(x: Form) -> None:
    """Reverse the order of the bits."""
    x.allow()
    d, value = x.dest(), x.source()
    d.set(value.call("bitreverse"))
