"""Types of the numbers in arrays: their bits in NumPy, their values in float64, and the constants of error bounds.

NumPy has neither bfloat16 nor floats of 8 bits: such numbers are stored as their bits, in uint16 and uint8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Element:
    """The type of an array's numbers: a float, or a whole number (signed or unsigned)."""

    name: str
    """NumPy's name of the type; a type that NumPy lacks has another name, such as `"bfloat16"` or `"float8_e4m3fn"`."""
    storage: type[np.generic]
    """NumPy's type in which the numbers are stored: the same type, or an unsigned one with the same bits."""
    bits: int
    """Significant bits, the hidden one included; 0 for whole numbers."""
    smallest: float
    """The smallest positive number, subnormal ones included; 0 for whole numbers."""
    overflow: float
    """The smallest magnitude that is rounded to infinity, or to NaN in a type without infinities. For whole numbers,
    which wrap around, it is `inf`, which no number reaches.
    """
    fraction: int = 0
    """Stored bits behind the point of an 8-bit float; 0 for all other types."""
    infinite: bool = True
    """False for an 8-bit float without infinities: the last pattern of either sign is its NaN."""

    @property
    def nbytes(self) -> int:
        """Bytes of one number."""
        return np.dtype(self.storage).itemsize

    @property
    def whole(self) -> bool:
        """True for a type of whole numbers."""
        return not self.bits

    @property
    def roundoff(self) -> float:
        """Largest relative error of one rounding to the nearest normal number; 0 for whole numbers."""
        return 2.0**-self.bits if self.bits else 0.0

    @property
    def saturates(self) -> bool:
        """True for 8-bit floats: conversions by CUDA's headers give the largest number instead of infinity."""
        return self.fraction > 0

    @cached_property
    def patterns(self) -> Values:
        """The 256 values of an 8-bit float, indexed by bit pattern."""
        bits, last = np.arange(128), 127 >> self.fraction
        exponent, low = bits >> self.fraction, last // 2 + self.fraction
        size = np.ldexp((bits & (1 << self.fraction) - 1) + (np.minimum(exponent, 1) << self.fraction).astype(float),
                        np.maximum(exponent, 1) - low)  # fmt: skip
        if self.infinite:
            size[exponent == last] = np.nan
            size[last << self.fraction] = np.inf
        size[127] = np.nan
        return np.concatenate([size, -size])

    def widen(self, stored: npt.NDArray[Any]) -> Values:
        """Return the values of stored numbers in float64. All are exact, except int64 beyond 2^53."""
        if self.fraction:
            values: Values = self.patterns[stored]
            return values
        if self.name == BFLOAT16.name:
            return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return stored.astype(np.float64)

    def stored(self, values: Values) -> npt.NDArray[Any]:
        """Return values as they are stored (dtype `storage`), rounded to nearest; bfloat16 is first rounded to float32.

        Overflow gives infinity, or NaN in a type without infinities. For a type of whole numbers, `values` must be
        whole; they wrap around.
        """
        if self.fraction:
            return self._of_8_bits(values)
        if self.name == BFLOAT16.name:
            with np.errstate(over="ignore"):
                words = values.astype(np.float32).view(np.uint32)
            rounded = ((words + np.uint32(0x7FFF) + ((words >> 16) & 1)) >> 16).astype(np.uint16)
            return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)
        if self.whole:
            return values.astype(np.int64).astype(self.storage)
        with np.errstate(over="ignore", under="ignore"):
            return values.astype(self.storage)

    def _of_8_bits(self, values: Values) -> npt.NDArray[np.uint8]:
        size = np.abs(values)
        # Subnormal numbers have the exponent of the smallest normal one.
        exponent = np.frexp(np.maximum(size, self.smallest * 2.0**self.fraction))[1]
        least = np.ldexp(1.0, exponent - 1 - self.fraction)
        with np.errstate(invalid="ignore"):
            rounded = np.round(size / least) * least
        finite = self.patterns[:128][np.isfinite(self.patterns[:128])]
        found = np.searchsorted(finite, np.minimum(rounded, finite[-1]))
        found = np.where(np.isnan(values), 127, np.where(size >= self.overflow, len(finite), found))
        patterns: npt.NDArray[np.uint8] = (found + 128 * np.signbit(values)).astype(np.uint8)
        return patterns

    def filler(self, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return an array that marks memory as unwritten: NaN, or an unlikely sum, 6/7 of the largest whole number."""
        if self.whole:
            limits = np.iinfo(np.dtype(self.storage).name)
            return np.full(shape, limits.max - limits.max // 7, self.storage)
        return self.stored(np.full(shape, np.nan))


FLOAT64 = Element("float64", np.float64, 53, 2.0**-1074, (2.0 - 2.0**-53) * 2.0**1023)
FLOAT32 = Element("float32", np.float32, 24, 2.0**-149, (2.0 - 2.0**-24) * 2.0**127)
FLOAT16 = Element("float16", np.float16, 11, 2.0**-24, (2.0 - 2.0**-11) * 2.0**15)
BFLOAT16 = Element("bfloat16", np.uint16, 8, 2.0**-133, (2.0 - 2.0**-8) * 2.0**127)
E4M3 = Element("float8_e4m3fn", np.uint8, 4, 2.0**-9, 464.0, 3, infinite=False)
E5M2 = Element("float8_e5m2", np.uint8, 3, 2.0**-16, 61440.0, 2)
E8M13 = Element("e8m13", np.float32, 14, 2.0**-139, FLOAT32.overflow)
"""The type in which tensor cores add products of 8-bit floats: float32 truncated to 13 bits behind the point. No array
has this type.
"""
_WHOLE = tuple(
    Element(np.dtype(kind).name, kind, 0, 0.0, np.inf)
    for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64)
)
ELEMENTS: Mapping[str, Element] = {
    element.name: element for element in (FLOAT32, FLOAT16, BFLOAT16, FLOAT64, E4M3, E5M2, *_WHOLE)
}
"""All types that arrays may have, by name."""


def element(name: str) -> Element:
    """Return the type of that name. Raises `UsageError` that lists the known names."""
    if name not in ELEMENTS:
        raise UsageError(f"no type of numbers named {name!r}; types: {', '.join(ELEMENTS)}")
    return ELEMENTS[name]
