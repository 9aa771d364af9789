"""Types of the numbers in arrays: their bits in NumPy, their values in float64, and the constants of error bounds.

NumPy has no bfloat16: such numbers are kept as their bits, in uint16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Element:
    """The type of an array's numbers."""

    name: str
    """NumPy's name of the type, or `"bfloat16"`."""
    storage: type[np.generic]
    """NumPy's type of the same bits."""
    bits: int
    """Significant bits, the hidden one included; 0 for whole numbers."""
    smallest: float
    """The smallest positive number, subnormal ones included; 0 for whole numbers."""
    overflow: float
    """Magnitudes from here on round to infinity; infinite for whole numbers, which wrap around."""

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
        """Largest relative error of one rounding to nearest; 0 for whole numbers."""
        return 2.0**-self.bits if self.bits else 0.0

    def widen(self, stored: npt.NDArray[Any]) -> Values:
        """Return the values of stored numbers, each exactly."""
        if self.name == BFLOAT16.name:
            return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return stored.astype(np.float64)

    def stored(self, values: Values) -> npt.NDArray[Any]:
        """Return numbers as they are stored, rounded to nearest. Whole numbers wrap around; values have to be whole."""
        if self.name == BFLOAT16.name:
            with np.errstate(over="ignore"):
                words = values.astype(np.float32).view(np.uint32)
            rounded = ((words + np.uint32(0x7FFF) + ((words >> 16) & 1)) >> 16).astype(np.uint16)
            return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)
        if self.whole:
            return values.astype(np.int64).astype(self.storage)
        with np.errstate(over="ignore", under="ignore"):
            return values.astype(self.storage)

    def filler(self, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return memory that must not be read: NaN, or whole numbers that no sum is likely to be."""
        if self.whole:
            limits = np.iinfo(np.dtype(self.storage).name)
            return np.full(shape, limits.max - limits.max // 7, self.storage)
        return self.stored(np.full(shape, np.nan))


FLOAT64 = Element("float64", np.float64, 53, 2.0**-1074, (2.0 - 2.0**-53) * 2.0**1023)
FLOAT32 = Element("float32", np.float32, 24, 2.0**-149, (2.0 - 2.0**-24) * 2.0**127)
FLOAT16 = Element("float16", np.float16, 11, 2.0**-24, (2.0 - 2.0**-11) * 2.0**15)
BFLOAT16 = Element("bfloat16", np.uint16, 8, 2.0**-133, (2.0 - 2.0**-8) * 2.0**127)
_WHOLE = tuple(
    Element(np.dtype(kind).name, kind, 0, 0.0, np.inf)
    for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64)
)
ELEMENTS: Mapping[str, Element] = {element.name: element for element in (FLOAT32, FLOAT16, BFLOAT16, FLOAT64, *_WHOLE)}
"""All types by name."""


def element(name: str) -> Element:
    """Return the type of that name; `UsageError` names the known ones."""
    if name not in ELEMENTS:
        raise UsageError(f"no type of numbers named {name!r}; types: {', '.join(ELEMENTS)}")
    return ELEMENTS[name]
