"""Conversion of float32 to FP16 and BF16, rounded to nearest even or in another direction."""

from __future__ import annotations

from gemmlab.emulator.isa.rounding import step
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.small_floats import FP16, bfloat_of, half_of, narrowed


def to_half(value: Lanes, mode: str = "") -> Lanes:
    """Return the FP16 bits of a float32, rounded to nearest even or in the direction `mode`; NaN gives 0x7FFF."""
    bits = narrowed(value, FP16)
    return step(bits, half_of(bits, 0), value, mode) if mode else bits


def to_bfloat(value: Lanes, mode: str = "") -> Lanes:
    """Return the BF16 bits of a float32, rounded to nearest even or in the direction `mode`; NaN gives 0x7FFF."""
    bits = value.bits("i32")
    odd = (bits >> 16) & 1
    rounded = (bits + 0x7FFF + odd) >> 16
    if mode:
        rounded = step(rounded, bfloat_of(rounded, 0), value, mode)
    return value.is_nan().select(rounded.like(0x7FFF), rounded)
