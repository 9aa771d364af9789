"""Conversion of 16- and 8-bit floats from and to float32, without the host's conversion instructions for them."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.emulator.lanes import Lanes


@dataclass(frozen=True, slots=True)
class Format:
    """A floating-point format with a smaller exponent range than float32; `exponent` and `mantissa` are in bits."""

    exponent: int
    mantissa: int
    infinite: bool = True
    """True if the highest exponent means infinity and NaN; if false, only the highest bit pattern is a NaN."""

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def magnitude(self) -> int:
        """Mask of all bits but the sign."""
        return (1 << (self.exponent + self.mantissa)) - 1

    @property
    def largest(self) -> int:
        """The bit pattern of the largest finite number."""
        return self.magnitude - (1 << self.mantissa) if self.infinite else self.magnitude - 1


FP16 = Format(5, 10)
E5M2 = Format(5, 2)
E4M3 = Format(4, 3, infinite=False)


def half_of(word: Lanes, part: int) -> Lanes:
    """Return the FP16 number `part` (0: low) of a word, converted exactly to float32."""
    return widened(word >> 16 if part else word & 0xFFFF, FP16)


def widened(bits: Lanes, form: Format) -> Lanes:
    """Return a number, given by its bits in a small format, converted exactly to float32."""
    sign = (bits & (form.magnitude + 1)) << (31 - form.exponent - form.mantissa)
    rest = bits & form.magnitude
    shift, least = 23 - form.mantissa, 1 << form.mantissa
    # A denormal is an integer times the least positive number; for others, the exponent gets another bias.
    tiny = rest.to_float("f32", signed=False) * 2.0 ** (1 - form.bias - form.mantissa)
    normal = (rest << shift) + ((127 - form.bias) << 23)
    special = (rest << shift) | 0x7F800000
    magnitude = rest.ult(least).select(tiny.bits("i32"), rest.ule(form.largest).select(normal, special))
    return (magnitude | sign).bits("f32")


def narrowed(value: Lanes, form: Format) -> Lanes:
    """Return the bits of a float32 in a small format, rounded to nearest even; NaN gives all ones with a sign bit of 0.

    A number that is too large becomes infinity, or the largest finite number if the format has no infinities.
    """
    bits = value.bits("i32")
    width, shift = form.exponent + form.mantissa, 23 - form.mantissa
    sign, rest = (bits >> (31 - width)) & (1 << width), bits & 0x7FFFFFFF
    # Adding this number aligns the unit of a denormal with float32's last bit, and the addition rounds.
    aligning = (127 + 24 - form.bias - form.mantissa) << 23
    tiny = (rest.bits("f32") + rest.like(aligning).bits("f32")).bits("i32") - aligning
    odd = (rest >> shift) & 1
    normal = (rest + ((1 << (shift - 1)) - 1 - ((127 - form.bias) << 23)) + odd) >> shift
    least_normal = (128 - form.bias) << 23
    magnitude = rest.ult(least_normal).select(tiny, normal).umin(form.largest + int(form.infinite))
    return rest.ugt(0x7F800000).select(rest.like(form.magnitude), magnitude | sign)


def pack_halves(low: Lanes, high: Lanes) -> Lanes:
    """Return two float32, rounded to nearest FP16, in one word; `low` is in its lower half."""
    return narrowed(low, FP16) | (narrowed(high, FP16) << 16)


def bfloat_of(word: Lanes, part: int) -> Lanes:
    """Return the BF16 number `part` (0: low) of a word, converted exactly to float32."""
    return (word & -0x10000 if part else word << 16).bits("f32")
