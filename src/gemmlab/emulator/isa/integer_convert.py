"""Saturation of integers to fewer bits."""

from __future__ import annotations

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes

_TYPES = {name: (int(name[1:]), name[0] == "S") for name in ("U16", "S16", "U8", "S8", "U4", "S4", "U2", "S2")}
_REST = {2: ("28",), 4: ("24",)}
"""Bits of a packed number -> suffix of operand `c`, which fills the other bits. For 8 bits `c` has no suffix: its lower
half is used. For 16 bits `c` is not used."""


def saturate(value: Lanes, bits: int, *, signed: bool) -> Lanes:
    """Return a signed number clamped to the range of a signed or unsigned type of `bits` bits, as 32 bits."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return value.smax(low).smin(high)


@opcode("I2I")
def i2i(x: Form) -> None:
    """Saturate a signed 32-bit number to 8 or 16 bits and extend it again."""
    match x.modifiers:
        case ("S8" | "U8" | "S16" | "U16" as name, "S32", "SAT"):
            bits, signed = _TYPES[name]
        case _:
            raise x.refuse()
    x.allow(*x.modifiers)
    d, value = x.dest(), x.source()
    d.set(saturate(value, bits, signed=signed))


@opcode("I2IP")
def i2ip(x: Form) -> None:
    """Saturate two numbers and pack them, the second one lowest (PTX, `cvt.pack`).

    Low bits of `c` fill the bits above; numbers of 16 bits leave none.
    """
    match x.modifiers:
        case (name, "S32", "SAT") if name in _TYPES:
            bits, signed = _TYPES[name]
        case _:
            raise x.refuse()
    rest = _REST.get(bits, ())
    x.allow(*x.modifiers, suffixes=rest)
    d, a, b = x.dest(), x.source(), x.source()
    operand = x.peek()
    if operand is None or operand.suffix != rest:
        raise x.refuse("another part of the last operand")
    c = x.source()
    ones = (1 << bits) - 1
    low, high = (saturate(value, bits, signed=signed) & ones for value in (b, a))
    packed = low | (high << bits)
    d.set(packed if bits == 16 else packed | (c << (2 * bits)))
