"""Check arguments of gemmlab's functions: return the array or number needed, or raise an error that names the fault."""

from __future__ import annotations

import ctypes
import operator
import re
from typing import Any, SupportsFloat, cast

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.words import shown

Float32Array = npt.NDArray[np.float32]


def float32_array(call: str, name: str, value: object) -> Float32Array:
    """Return `value` as a plain `numpy.ndarray` that shares its memory.

    Raises `ArgumentTypeError` unless it is a NumPy array of float32 in native byte order; also for a masked array.
    """
    if not isinstance(value, np.ndarray):
        raise ArgumentTypeError(
            f"{call}: {name} is {type(value).__module__}.{type(value).__qualname__}, not a NumPy array; "
            f"numpy.asarray({name}, dtype=numpy.float32) makes one"
        )
    if type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray):
        raise ArgumentTypeError(
            f"{call}: {name} is a masked array, whose mask would be lost; "
            f"{name}.filled(0) has 0 in place of masked elements"
        )
    if value.dtype != np.float32 or not value.dtype.isnative:
        dtype = value.dtype if value.dtype.isnative else value.dtype.str
        converted, made = "x.astype(numpy.float32)", "numpy.empty(x.shape, numpy.float32)"
        raise dtype_error(call, name, dtype, converted, made, native="native ")
    return cast("Float32Array", value.view(np.ndarray))


def dtype_error(
    call: str, name: str, dtype: object, conversion: str = "", making: str = "", *, native: str = ""
) -> ArgumentTypeError:
    """Return the error for the operand `name`, whose dtype is not float32. It suggests a remedy if there is one.

    `conversion` is an expression that converts an operand `x`, `making` one that makes a float32 array of the shape of
    `x`; both are empty if the operand's package is unknown. In the message `x` becomes `name`. For `out` the remedy is
    `making`, as a converted copy would receive the result. `native` is `"native "` if the byte order matters.
    """
    if name == "out":
        how = f"{making} makes one" if making else "pass a float32 array: a converted copy would get the result"
    else:
        how = f"{conversion} converts it" if conversion else ""
    hint = "; " + re.sub(r"\bx\b", name, how) if how else ""
    return ArgumentTypeError(f"{call}: {name} has dtype {dtype}, not {native}float32{hint}")


def float32_scalar(value: SupportsFloat) -> float:
    """Return a factor (alpha, beta) rounded to float32, as products use it; it may become 0 or an infinity.

    All decisions, such as whether a matrix is read at all, use the rounded value. A value that `float` refuses raises
    the error of `float`.
    """
    return ctypes.c_float(float(value)).value


def flag(call: str, name: str, value: object) -> bool:
    """Return a flag as a `bool`. Raises `ArgumentTypeError` unless it is `True`, `False`, 0 or 1."""
    if not isinstance(value, int | np.integer | np.bool_) or value not in (0, 1):
        raise ArgumentTypeError(f"{call}: {name} is {shown(value)}; it must be True or False")
    return bool(value)


def thread_count(call: str, threads: object) -> int | None:
    """Return `threads` as an `int`, or `None` for `None`.

    Raises `ArgumentTypeError` for another type (also `bool`), and `UsageError` for a number below 1.
    """
    if threads is None:
        return None
    try:
        count = operator.index(cast("Any", threads))
    except TypeError as error:
        raise ArgumentTypeError(f"{call}: threads is {shown(threads)}, not a whole number") from error
    if isinstance(threads, bool):
        raise ArgumentTypeError(f"{call}: threads is {threads}, not a whole number")
    if count < 1:
        raise UsageError(f"{call}: threads is {shown(threads)}; it must be at least 1")
    return count
