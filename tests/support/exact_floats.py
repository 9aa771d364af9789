"""Binary floating point by exact fractions: what any format's arithmetic has to give, in every rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf, isfinite, isinf, isnan, nan

import numpy as np

UP = {"": 0, "RN": 0, "RZ": 0, "RM": -1, "RP": 1}


@dataclass(frozen=True)
class Binary:
    """An interchange format: widths of exponent and mantissa."""

    exponent: int
    mantissa: int

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    def is_nan(self, pattern: int) -> bool:
        return pattern & (self.sign - 1) > self.infinity

    def is_denormal(self, pattern: int) -> bool:
        return 0 < pattern & (self.sign - 1) < 1 << self.mantissa

    def special(self, pattern: int) -> float | None:
        """NaN or an infinity; nothing for a finite number."""
        if self.is_nan(pattern):
            return nan
        if pattern & (self.sign - 1) == self.infinity:
            return -inf if pattern & self.sign else inf
        return None

    def value(self, pattern: int) -> Fraction:
        """A finite number."""
        field = pattern >> self.mantissa & ((1 << self.exponent) - 1)
        fraction = pattern & ((1 << self.mantissa) - 1)
        if field:
            fraction |= 1 << self.mantissa
        magnitude = Fraction(fraction) * Fraction(2) ** (max(field, 1) - self.bias - self.mantissa)
        return -magnitude if pattern & self.sign else magnitude

    def number(self, pattern: int) -> Fraction | float:
        found = self.special(pattern)
        return self.value(pattern) if found is None else found

    def of(self, value: Fraction | float, mode: str = "", *, negative_zero: bool = False) -> int:
        """The pattern of a number rounded in a direction; NaN is one of its patterns."""
        if isinstance(value, float):
            if isnan(value):
                return self.infinity | 1 << (self.mantissa - 1)
            if isinf(value):
                return self.infinity | self.sign * (value < 0)
            value = Fraction(value)
        if value == 0:
            return self.sign * negative_zero
        sign, magnitude = self.sign * (value < 0), abs(value)
        power = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        power -= Fraction(2) ** power > magnitude
        unit = Fraction(2) ** (max(power, 1 - self.bias) - self.mantissa)
        steps, rest = divmod(magnitude, unit)
        whole = int(steps)
        if mode in {"", "RN"}:
            whole += rest * 2 > unit or (rest * 2 == unit and whole & 1)
        else:
            whole += rest > 0 and UP[mode] == (-1 if sign else 1)
        # The exponent field counts the leading bit, which a denormal lacks.
        pattern = ((max(power, 1 - self.bias) + self.bias - 1) << self.mantissa) + whole
        if pattern >= self.infinity:
            outwards = mode in {"", "RN"} or UP[mode] == (-1 if sign else 1)
            pattern = self.infinity if outwards else self.infinity - 1
        return sign | pattern

    def flushed(self, pattern: int) -> int:
        """Zero of the same sign for a denormal number."""
        return pattern & self.sign if self.is_denormal(pattern) else pattern

    def same(self, one: int, two: int) -> bool:
        """Equal bits, or both NaN."""
        return one == two or (self.is_nan(one) and self.is_nan(two))

    def fused(self, a: int, b: int, c: int, mode: str = "") -> int:
        """`a * b + c`."""
        x, y, z = (self.number(pattern) for pattern in (a, b, c))
        if all(isinstance(item, Fraction) for item in (x, y, z)):
            product_negative, addend_negative = bool((a ^ b) & self.sign), bool(c & self.sign)
            both = product_negative or addend_negative if mode == "RM" else product_negative and addend_negative
            return self.of(x * y + z, mode, negative_zero=both)
        return self.of(_limits(x, y, z))

    def product(self, a: int, b: int, mode: str = "") -> int:
        x, y = self.number(a), self.number(b)
        negative = bool((a ^ b) & self.sign)
        if isinstance(x, Fraction) and isinstance(y, Fraction):
            return self.of(x * y, mode, negative_zero=negative)
        return self.of(_limits(x, y, 0.0))

    def sum(self, a: int, b: int, mode: str = "") -> int:
        return self.fused(a, self.of(Fraction(1)), b, mode)

    def whole(self, pattern: int, how: str) -> int:
        """Rounded to a whole number of the format."""
        number = self.number(pattern)
        if not isinstance(number, Fraction):
            return pattern
        return self.of(Fraction(whole(number, how)), negative_zero=bool(pattern & self.sign))

    def samples(self, seed: int, count: int) -> list[int]:
        """Patterns: edges, numbers of any magnitude, and ones of few bits near 1, which cancel and tie."""
        rng = np.random.default_rng(seed)
        top = 1 << self.mantissa
        one = self.bias << self.mantissa
        edges = [
            0, 1, 2, top // 2, top - 1, top, top + 1, 2 * top, one - 1, one, one + 1, one + top // 2, one + top,
            self.infinity - 1, self.infinity - 2, self.infinity - top, self.infinity, self.infinity | 1,
            self.infinity | top // 2,
        ]  # fmt: skip
        found = []
        for which in rng.integers(0, 5, count):
            if which == 0:
                pattern = int(rng.choice(np.array(edges, np.uint64)))
            elif which == 1:
                pattern = int(rng.integers(0, 1 << 63, dtype=np.uint64)) >> (63 - self.bits + 1)
            else:
                far = 3 if which == 2 else min(self.mantissa + 3, self.bias - 1)
                field = self.bias + int(rng.integers(-far, far + 1))
                bits = int(rng.integers(0, top))
                if which == 4:
                    bits &= -1 << int(rng.integers(0, self.mantissa))
                pattern = field << self.mantissa | bits
            found.append(pattern | self.sign * int(rng.integers(0, 2)))
        return found


def _limits(x: Fraction | float, y: Fraction | float, z: Fraction | float) -> float:
    """`x * y + z` where one of them is not finite: magnitudes of the others do not matter."""

    def simple(item: Fraction | float) -> float:
        return item if isinstance(item, float) and not isfinite(item) else float((item > 0) - (item < 0))

    return simple(x) * simple(y) + simple(z)


def whole(number: Fraction, how: str) -> int:
    """A whole number by `FLOOR`, `CEIL`, `TRUNC`, or the nearest, even where there are two."""
    if how == "FLOOR":
        return floor(number)
    if how == "CEIL":
        return -floor(-number)
    return int(number) if how == "TRUNC" else round(number)


def integer_of(number: Fraction | float, low: int, high: int, how: str, not_a_number: int) -> int:
    """The nearest integer of a range."""
    if isinstance(number, float):
        return not_a_number if isnan(number) else high if number > 0 else low
    return min(max(whole(number, how), low), high)


def differences(form: Binary, got: Sequence[int], wanted: Sequence[int]) -> list[tuple[int, str, str]]:
    """Where bits differ, and how."""
    return [
        (place, hex(one), hex(two))
        for place, (one, two) in enumerate(zip(got, wanted, strict=True))
        if not form.same(int(one), int(two))
    ]


F16, BF16, F32, F64 = Binary(5, 10), Binary(8, 7), Binary(8, 23), Binary(11, 52)
E4M3, E5M2 = Binary(4, 3), Binary(5, 2)
MODES = ("", "RZ", "RM", "RP")
