"""Reductions of bulk operations: the elements at the destination are combined with the new ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.emulator.async_calls import REDUCTIONS, TYPES

Bytes = npt.NDArray[np.uint8]
Array = npt.NDArray[Any]
_DTYPES = {
    "U32": np.uint32, "S32": np.int32, "U64": np.uint64, "S64": np.int64, "F16": np.float16, "BF16": np.uint16,
    "F32": np.float32, "F64": np.float64,
}  # fmt: skip


def number_of(name: str, kind: str) -> int:
    """Return the number of a reduction (`async_calls.TYPES`) by its name and type."""
    return REDUCTIONS.index(name) + 16 * TYPES.index(kind)


def combined(reduction: int, old: Bytes, new: Bytes) -> Bytes:
    """Combine two arrays of bytes, element by element; sums of floats are rounded to nearest even, integers wrap.

    A minimum or maximum of a NaN and a number is the number. A NaN result has the bits of `_CANONICAL` (0x7FFF in
    BF16), except in a sum of float64: if an operand is a NaN, signalling or not, the result has its bits, and if both
    are, those of `new`.
    """
    name, kind = REDUCTIONS[reduction & 15], TYPES[reduction >> 4]
    there, come = (np.ascontiguousarray(part).view(_DTYPES[kind]) for part in (old, new))
    if kind == "BF16":
        wide = [(part.astype(np.uint32) << 16).view(np.float32) for part in (there, come)]
        result: Array = _to_bfloat(_float(name, *wide))
    elif kind in _CANONICAL:
        result = _float(name, there, come)
        whole = result.view(f"u{result.itemsize}")
        whole[np.isnan(result)] = _CANONICAL[kind]
        if name == "ADD" and kind == "F64":
            for operand in (there, come):
                nan = np.isnan(operand)
                whole[nan] = operand.view(np.uint64)[nan]
    else:
        result = _WHOLE[name](there, come)
    return np.ascontiguousarray(result).view(np.uint8)


def _float(name: str, there: Array, come: Array) -> Array:
    with np.errstate(all="ignore"):
        found: Array = {"ADD": np.add, "MIN": np.fmin, "MAX": np.fmax}[name](there, come)
    if name != "ADD":
        # NumPy may return either of two zeros; -0 is the lesser here.
        negative = (np.logical_or if name == "MIN" else np.logical_and)(np.signbit(there), np.signbit(come))
        zeros = (there == 0) & (come == 0)
        found[zeros] = np.where(negative, -0.0, 0.0)[zeros]
    return found


def _to_bfloat(value: Array) -> Array:
    bits = value.view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(value), 0x7FFF, rounded).astype(np.uint16)


_CANONICAL = {"F16": 0x7FFF, "F32": 0x7FFFFFFF, "F64": 0xFFF8000000000000}
"""Bits of a NaN result by type; that of float64 has its sign bit set."""
_WHOLE: dict[str, Callable[[Array, Array], Array]] = {
    "ADD": lambda there, come: there + come,
    "MIN": np.minimum,
    "MAX": np.maximum,
    "AND": np.bitwise_and,
    "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
    "INC": lambda there, come: np.where(there >= come, 0, there + 1).astype(there.dtype),
    "DEC": lambda there, come: np.where((there == 0) | (there > come), come, there - 1).astype(there.dtype),
}
