"""Recorded bits against those of another run: equal, NaN for NaN, or within what the kernel's description allows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from cases import Case, Tolerance
from edges import Bits
from fragments import scales

Found = npt.NDArray[np.bool_]
_LAYOUT = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "tf32": (8, 23), "unit32": (8, 23), "f64": (11, 52)}
"""Exponent and mantissa bits."""


def wrong(case: Case, got: Bits, wanted: Bits) -> Found:
    """Which values of the output differ by more than they may."""
    (kind,) = (argument.kind for argument in case.arguments if argument.role in {"out", "inout"})
    plain = kind.removesuffix("x2")
    if plain not in _LAYOUT:
        return np.not_equal(got, wanted)
    if plain != kind:
        got, wanted = got.view(np.uint16), wanted.view(np.uint16)
    differ: Found = (got != wanted) & ~(_is_nan(plain, got) & _is_nan(plain, wanted))
    if not differ.any() or case.near == Tolerance():
        return differ
    differ &= ~_near(plain, got, wanted, case.near, scales(case))
    return differ


def _is_nan(kind: str, bits: Bits) -> Found:
    exponent, mantissa = _LAYOUT[kind]
    infinity = ((1 << exponent) - 1) << mantissa
    return (bits & bits.dtype.type(infinity | (1 << mantissa) - 1)) > infinity


def _near(kind: str, got: Bits, wanted: Bits, near: Tolerance, scale: npt.NDArray[np.float64] | None) -> Found:
    one, two = numbers(kind, got), numbers(kind, wanted)
    with np.errstate(invalid="ignore", over="ignore"):
        far = np.abs(one - two)
        allowed = np.maximum(near.abs, near.rel * np.abs(two))
        if scale is not None:
            allowed = near.sum * scale + near.rel * np.abs(two)
        finite = np.isfinite(one) & np.isfinite(two)
        return finite & ((far <= allowed) | (_steps(kind, got, wanted) <= near.ulp))


def numbers(kind: str, bits: Bits) -> npt.NDArray[np.float64]:
    """The numbers that bits stand for."""
    if kind == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return bits.view(f"f{bits.dtype.itemsize}").astype(np.float64)


def _steps(kind: str, got: Bits, wanted: Bits) -> npt.NDArray[np.float64]:
    """How many representable numbers lie between, as floats: more than 2^53 need no exactness."""
    return np.abs(_ordered(kind, got) - _ordered(kind, wanted))


def _ordered(kind: str, bits: Bits) -> npt.NDArray[np.float64]:
    sign = bits.dtype.type(1 << (sum(_LAYOUT[kind])))
    magnitude = (bits & ~sign).astype(np.int64)
    return np.where(bits & sign, -magnitude, magnitude).astype(np.longdouble)
