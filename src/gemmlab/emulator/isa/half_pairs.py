"""Pairs of 16-bit floats, FP16 or BF16, as operands and results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.halves import to_bfloat, to_half
from gemmlab.emulator.isa.rounding import narrow, saturated, to_odd, two_sum
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.small_floats import bfloat_of, half_of

SELECTORS = ("H0_H0", "H1_H1", "H1_H0")
_LEAST_NORMAL_HALF = 2.0**-14
Pair = tuple[Lanes, Lanes]
"""The lower and the upper number, as float32."""


@dataclass(frozen=True, slots=True)
class Halves:
    """The operands and results of an instruction on pairs of 16-bit floats."""

    x: Form

    @property
    def brain(self) -> bool:
        """True if the numbers are BF16, false for FP16."""
        return self.x.has("BF16_V2", "BF16")

    def source(self) -> Pair:
        """Take the next operand, with its `-` and `|x|` applied."""
        return self.source_and_original()[0]

    def source_and_original(self) -> tuple[Pair, Pair]:
        """Take the next operand; return it with its `-` and `|x|` applied, and without.

        It is a register (a selector duplicates one half of it), a constant, or two immediates.
        """
        x = self.x
        operand = x.peek()
        if operand is None:
            raise x.refuse("too few operands")
        if operand.kind == "imm":
            upper, lower = x.source(), x.source()
            pair = self._numbers((upper << 16) | (lower & 0xFFFF), "H1_H0")
            return pair, pair
        (word,) = x.words(1)
        low, high = self._numbers(word, next(iter(operand.suffix), "H1_H0"))
        return (x.adjust(operand, low), x.adjust(operand, high)), (low, high)

    def _numbers(self, word: Lanes, selector: str) -> Pair:
        read = bfloat_of if self.brain else half_of
        parts = {"H0_H0": (0, 0), "H1_H1": (1, 1), "H1_H0": (0, 1)}[selector]
        low, high = (self.flush(read(word, part)) for part in parts)
        return low, high

    def flush(self, value: Lanes) -> Lanes:
        """Return a value; with `.FTZ`, a denormal FP16 becomes a zero of the same sign. BF16 is never flushed."""
        if self.brain or not self.x.has("FTZ"):
            return value
        tiny = value.call("fabs").lt(_LEAST_NORMAL_HALF)
        return tiny.select((value.bits("i32") & -0x80000000).bits("f32"), value)

    def bits(self, value: Lanes) -> Lanes:
        """Return the 16 bits of a float32 result, rounded to nearest even, as the modifiers require.

        `.SAT` clamps it to 0 to 1 and `.RELU` to 0 or more before rounding; `.FTZ` flushes FP16 after rounding.
        """
        x = self.x
        if x.has("SAT"):
            value = saturated(value)
        if x.has("RELU"):
            value = value.is_nan().select(value, value.gt(0.0).select(value, 0.0))
        if self.brain:
            return to_bfloat(value)
        bits = to_half(value)
        if not x.has("FTZ"):
            return bits
        # Flushing comes after rounding: a number that rounds up to the least normal one is not flushed.
        return (bits & 0x7C00).eq(0).select(bits & 0x8000, bits)

    def word(self, function: Callable[..., Lanes], *pairs: Pair) -> Lanes:
        """Apply `function` to the lower and to the upper numbers, as float32, and pack the two results."""
        low, high = (self.bits(function(*numbers)) for numbers in zip(*pairs, strict=True))
        return low | (high << 16)

    def fused(self, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        """Return `a * b + c` in float32, exact or rounded to odd."""
        if not self.brain:
            return to_odd(*two_sum(a * b, c))
        total, lost = two_sum(a.widen("f64") * b.widen("f64"), c.widen("f64"))
        return narrow(to_odd(total, lost), "ODD")
