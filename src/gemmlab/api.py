"""The library: arrays in, arrays out.

`gemm` tries the compiled entry first, which does plain float32 matrices by itself. Everything else comes to
`_general`, which prepares operands (views stay views wherever a kernel can read them) or says what is wrong.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex, cast

import numpy as np
import numpy.typing as npt

from gemmlab.core.arguments import float32_array, thread_count
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.precision import FLOAT32
from gemmlab.dispatch.precision import HIGHEST, precision_for

if TYPE_CHECKING:
    from gemmlab.dispatch.cpu import CpuProduct

Float32Array = npt.NDArray[np.float32]
_Entry = Callable[..., Float32Array | None]

_entry: _Entry | None = None
_product: CpuProduct | None = None
_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    # A fork waits for a load that is under way, so that no child is born in the middle of one.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def gemm(
    a: Float32Array,
    b: Float32Array,
    *,
    alpha: SupportsFloat = 1.0,
    beta: SupportsFloat = 0.0,
    c: Float32Array | None = None,
    out: Float32Array | None = None,
    trans_a: bool = False,
    trans_b: bool = False,
    threads: SupportsIndex | None = None,
    precision: str = HIGHEST,
) -> Float32Array:
    """`alpha * op(a) @ op(b) + beta * c` in float32, where op transposes the last two axes if asked to.

    Shapes are those of `numpy.matmul`: (..., m, k) by (..., k, n) gives (..., m, n), leading axes broadcast,
    and a one-dimensional operand is a row on the left or a column on the right. Operands may be any views.

    `c` broadcasts to the result's shape and is needed when beta is not 0; with beta == 0 it is not read.
    `out` receives the result (it may be `c` itself, else it must share no element with an operand) and is returned.
    alpha == 0 or k == 0 gives beta * c without reading a and b. `threads` bounds the threads used, by default
    one for each physical core the process may use; the result is the same to the bit for any number.

    `precision` is the lowest that will do: `"highest"`, IEEE float32 throughout, or `"tf32"`, inputs rounded to ten
    bits behind the point, where that is faster. On a CPU it is not, and both compute in float32.

    Raises `ArgumentTypeError` (a TypeError) for an operand that is not a float32 NumPy array, `UsageError` (a
    ValueError) for shapes that do not fit, an `out` that is read-only, of another shape or overlapping, a
    thread count below 1 and an unknown precision, and `MemoryError`.
    """
    if precision != HIGHEST:
        precision_for(precision, (FLOAT32,))
    if _entry is not None and (c is None or c is out):
        target = _fresh(a, b, trans_a, trans_b) if out is None else out
        if target is not None:
            result = _entry(a, b, target, c, alpha, beta, trans_a, trans_b, threads)
            if result is not None:
                return result
    return _general(a, b, alpha, beta, c, out, trans_a, trans_b, threads)


def _fresh(a: Float32Array, b: Float32Array, trans_a: bool, trans_b: bool) -> Float32Array | None:
    """Memory for the product of two matrices; None for anything that has to be looked at first."""
    try:
        if a.ndim == 2 and b.ndim == 2:
            return np.empty((a.shape[1 if trans_a else 0], b.shape[0 if trans_b else 1]), np.float32)
    except (AttributeError, IndexError, TypeError, ValueError, MemoryError):
        pass
    return None


def _load() -> CpuProduct:
    """Compile or load the product, once."""
    global _entry, _product
    with _lock:
        if _product is None:
            from gemmlab.dispatch.cpu import load_product

            product = load_product()
            _entry = product.python_entry
            _product = product
        return _product


def _general(
    a: object,
    b: object,
    alpha: SupportsFloat,
    beta: SupportsFloat,
    c: object,
    out: object,
    trans_a: object,
    trans_b: object,
    threads: object,
) -> Float32Array:
    scale, keep = _scalar("alpha", alpha), _scalar("beta", beta)
    left, right = _operand("a", a), _operand("b", b)
    count = thread_count("gemm", threads)
    row, column = left.ndim == 1, right.ndim == 1
    for name, flag in (("trans_a", trans_a), ("trans_b", trans_b)):
        if not isinstance(flag, int | np.integer | np.bool_) or flag not in (0, 1):
            raise ArgumentTypeError(f"gemm: {name} is {flag!r}; it must be True or False")
    left = left[np.newaxis, :] if row else left.swapaxes(-1, -2) if trans_a else left
    right = right[:, np.newaxis] if column else right.swapaxes(-1, -2) if trans_b else right
    if left.shape[-1] != right.shape[-2]:
        raise UsageError(
            f"gemm: op(a) of shape {left.shape} and op(b) of shape {right.shape} do not fit: "
            f"k is {left.shape[-1]} on the left and {right.shape[-2]} on the right"
        )
    try:
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    except ValueError as error:
        raise UsageError(
            f"gemm: leading axes {left.shape[:-2]} of a and {right.shape[:-2]} of b do not broadcast"
        ) from error
    matrix = (*batch, left.shape[-2], right.shape[-1])
    shape = (*batch, *(() if row else matrix[-2:-1]), *(() if column else matrix[-1:]))
    addend = _addend(c, keep, shape)
    target = _target(out, shape, {"a": left, "b": right, "c": addend})
    full = target[..., np.newaxis] if column else target
    full = full[..., np.newaxis, :] if row else full
    if addend is not None and not _same(addend, target):
        np.copyto(target, addend)
    product = _load()
    lefts = np.broadcast_to(left, (*batch, *left.shape[-2:]))
    rights = np.broadcast_to(right, (*batch, *right.shape[-2:]))
    for index in np.ndindex(*batch):
        product.run(lefts[index], rights[index], full[index], scale, keep, count)
    return target if out is None else cast("Float32Array", out)


def _operand(name: str, value: object) -> Float32Array:
    array = float32_array("gemm", name, value)
    if array.ndim == 0:
        raise UsageError(f"gemm: {name} is a scalar; it must have at least one axis")
    return array


def _scalar(name: str, value: SupportsFloat) -> float:
    try:
        if not isinstance(value, (str, bytes, bytearray)):
            return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentTypeError(f"gemm: {name} is {value!r}, not a real number") from error
    raise ArgumentTypeError(f"gemm: {name} is {value!r}, not a real number")


def _addend(c: object, beta: float, shape: tuple[int, ...]) -> Float32Array | None:
    """c broadcast to the result; None when beta == 0 leaves it unread."""
    if c is None:
        if beta != 0.0:
            raise UsageError(f"gemm: beta is {beta} but there is no c to scale by it")
        return None
    array = float32_array("gemm", "c", c)
    try:
        spread = np.broadcast_to(array, shape)
    except ValueError as error:
        raise UsageError(f"gemm: c of shape {array.shape} does not broadcast to the result's {shape}") from error
    return None if beta == 0.0 else spread


def _target(out: object, shape: tuple[int, ...], operands: dict[str, Float32Array | None]) -> Float32Array:
    if out is None:
        try:
            return np.empty(shape, np.float32)
        except ValueError as error:
            raise MemoryError(f"gemm: a result of shape {shape} is larger than any array can be") from error
    target = float32_array("gemm", "out", out)
    if target.shape != shape:
        raise UsageError(f"gemm: out has shape {target.shape}; the result has {shape}")
    if not target.flags.writeable:
        raise UsageError("gemm: out is read-only")
    if _folds(target):
        raise UsageError(f"gemm: elements of out share memory with each other (strides {target.strides})")
    for name, operand in operands.items():
        if operand is not None and not (name == "c" and _same(operand, target)) and _overlap(operand, target):
            raise UsageError(f"gemm: out shares memory with {name}; give it memory of its own")
    return target


def _same(left: Float32Array, right: Float32Array) -> bool:
    """Whether two arrays of one shape are the same elements; the stride of an axis of extent 1 means nothing."""
    if left.size == 0:
        return True
    axes = zip(left.shape, left.strides, right.strides, strict=True)
    return left.ctypes.data == right.ctypes.data and all(extent == 1 or one == two for extent, one, two in axes)


def _folds(array: Float32Array) -> bool:
    """Whether the strides let two elements of an array meet (none of the usual views do)."""
    reach = array.itemsize
    for stride, extent in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride < reach:
            return array.size > 0
        reach = stride * (extent - 1) + reach
    return False


def _overlap(left: Float32Array, right: Float32Array) -> bool:
    if not np.may_share_memory(left, right):
        return False
    effort: Any = 100_000
    try:
        return np.shares_memory(left, right, max_work=effort)
    except (np.exceptions.TooHardError, OverflowError):
        return True
