"""`sgemm` as in `scipy.linalg.blas`: operands are cast and reshaped as its wrapper does, and the result is stored by
columns.
"""

from __future__ import annotations

from typing import Any, SupportsFloat, cast

import numpy as np
import numpy.typing as npt

from gemmlab.api import gemm
from gemmlab.core.argument_checks import float32_scalar
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.words import shown

Float32Array = npt.NDArray[np.float32]


def sgemm(
    alpha: SupportsFloat,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    beta: SupportsFloat | None = 0.0,
    c: npt.ArrayLike | None = None,
    trans_a: int = 0,
    trans_b: int = 0,
    overwrite_c: int = 0,
) -> Float32Array:
    """Return `alpha * op(a) @ op(b) + beta * c`, as `scipy.linalg.blas.sgemm` does, in a new array in Fortran order.

    Operands of other types are cast to float32; views and both orders are read in place. A vector is a column; an
    operand of more than two axes loses those of extent 1. `trans_a` and `trans_b` are 0, 1 (transposed) or 2
    (conjugated, the same for real numbers). Without `c` zeros are added. With `overwrite_c` the result goes into `c`,
    and `c` itself is returned, if it is float32, in Fortran order, writeable, and shares no memory with a and b; else
    `c` is unchanged.

    Raises `ArgumentTypeError` (a TypeError) for operands that cannot be cast and for factors and flags that are no
    numbers, `UsageError` (a ValueError) for shapes that do not fit and other flags, and `MemoryError`.
    """
    left, right = _matrix("a", a), _matrix("b", b)
    turned_a, turned_b = _flag("trans_a", trans_a), _flag("trans_b", trans_b)
    (k, m) = left.shape if turned_a else left.shape[::-1]
    (n, depth) = right.shape if turned_b else right.shape[::-1]
    if depth != k:
        raise UsageError(
            f"sgemm: k is {k} in a of shape {left.shape} with trans_a={int(turned_a)}, "
            f"and {depth} in b of shape {right.shape} with trans_b={int(turned_b)}"
        )
    scale, keep = _number("alpha", alpha), 0.0 if beta is None else _number("beta", beta)
    result = _result(c, (m, n), left, right, keep=keep != 0.0, overwrite=bool(overwrite_c))
    # In row-major terms this is the transposed product, and `gemm` can write `rows` in place.
    rows = np.asarray(result).reshape((m, n), order="F").T
    gemm(right, left, alpha=scale, beta=keep, c=rows, out=rows, trans_a=not turned_b, trans_b=not turned_a)
    return result


def _matrix(name: str, value: object) -> Float32Array:
    array = _array(name, value)
    if array.ndim == 2:
        return array
    return array.reshape(_two_axes(name, array.shape))


def _array(name: str, value: object) -> Float32Array:
    if value is None:
        raise ArgumentTypeError(f"sgemm: {name} is None, not an array")
    try:
        return np.asarray(cast("Any", value), np.float32)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"sgemm: {name} cannot be cast to float32: {error}") from error


def _two_axes(name: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the shape of the matrix that an array of 0, 1 or more than 2 axes becomes. Raises `UsageError` if more
    than two of the extents are not 1.
    """
    extents = shape if len(shape) < 2 else tuple(extent for extent in shape if extent != 1)
    if len(extents) > 2:
        raise UsageError(f"sgemm: {name} has shape {shape}; it must be a matrix")
    first, second, *_ = (*extents, 1, 1)
    return first, second


def _flag(name: str, value: Any) -> bool:
    try:
        number = int(value)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"sgemm: {name} is {shown(value)}; it must be 0, 1 or 2") from error
    if not 0 <= number <= 2:
        raise UsageError(f"sgemm: {name} is {shown(value)}; it must be 0, 1 or 2")
    return number != 0


def _number(name: str, value: Any) -> float:
    try:
        return float32_scalar(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentTypeError(f"sgemm: {name} is {shown(value)}, not a real number") from error


def _result(
    c: object, shape: tuple[int, int], a: Float32Array, b: Float32Array, *, keep: bool, overwrite: bool
) -> Float32Array:
    """Return the array for the result: `c` itself if requested and possible, else a new array, with c's values if
    `keep`.
    """
    if c is None:
        new = _empty(shape)
        if keep:
            new.fill(0.0)
        return new
    array = _array("c", c)
    if (array.shape if array.ndim == 2 else _two_axes("c", array.shape)) != shape:
        raise UsageError(f"sgemm: c has shape {array.shape}; the result has {shape}")
    if overwrite and isinstance(c, np.ndarray) and c.dtype == np.float32 and c.dtype.isnative:
        flags = c.flags
        apart = not (np.may_share_memory(c, a) or np.may_share_memory(c, b))
        if flags.f_contiguous and flags.aligned and flags.writeable and apart:
            return c
    new = _empty(array.shape)
    if keep:
        np.copyto(new, array)
    return new


def _empty(shape: tuple[int, ...]) -> Float32Array:
    try:
        return np.empty(shape, np.float32, order="F")
    except ValueError as error:
        raise MemoryError(f"sgemm: a result of shape {shape} is larger than any array can be") from error
