"""The library call `sum`: the sum of all elements of an array, or sums along some axes.

Elements are read in place, whatever the strides. The loops that do so are planned once for a layout
(`dispatch/sum_plans.py`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

import numpy as np
import numpy.typing as npt

from gemmlab.arrays.on_gpu import device_array, is_device_array
from gemmlab.arrays.on_host import host_views, is_host_array, like, one_package
from gemmlab.core.argument_checks import flag, float32_array, thread_count
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.fork_lock import fork_lock
from gemmlab.core.memory_room import require_room_to_import
from gemmlab.core.words import shown
from gemmlab.dispatch.request import folds

if TYPE_CHECKING:
    from gemmlab.dispatch.cpu_sums import CpuSums
    from gemmlab.dispatch.sum_plans import SumPlan

Float32Array = npt.NDArray[np.float32]

_MOST_PLANS = 1024
_INTEGERS = {int}

_plans: dict[tuple[Any, ...], SumPlan] = {}
"""Plans by shape, strides, axes and `keepdims`; cleared when there are `_MOST_PLANS`."""
_FLOAT32 = np.dtype(np.float32)

_again: Callable[[Any, Any, bool], Any] | None = None
"""The function that is tried first for arrays on a GPU (`dispatch.cuda_sums_again.again`); `None` until the first such
call.
"""
_sums: CpuSums | None = None
_lock = fork_lock()


def sum(  # noqa: A001 - as NumPy calls it
    x: Any,
    axis: SupportsIndex | Sequence[SupportsIndex] | None = None,
    *,
    out: Any = None,
    keepdims: bool = False,
    threads: SupportsIndex | None = None,
) -> Any:
    """Return the float32 sum of all elements of `x`, or an array of sums along `axis`, one axis or several.

    `x` is a float32 array with any strides, of NumPy, or of torch or any package with DLPack on the CPU. The result is
    of the same package; where NumPy's is a number, it is an array without axes. With `keepdims` the axes summed along
    stay, each with an extent of 1. `out`, of the result's shape and of the package of `x`, receives the result and is
    returned; it may share memory with `x`, on a GPU only if it is of torch or CuPy.

    Elements are read in place, and those that a broadcast repeats are read once. Up to millions of terms, a term goes
    through at most some hundred consecutive additions, whatever the axes. `threads` bounds the threads used, by default
    one for each physical core that the process may use; the result is the same to the bit for any number. The sum of
    nothing is 0.

    `x` may also lie on a GPU (torch, CuPy, anything with `__cuda_array_interface__` or DLPack). Then the result is an
    array of the same package, made on its current stream, without axes where NumPy's is a number. Nothing is copied to
    the host, and the call waits for nothing. The bits of the result depend on shape, strides, axes and the array's
    start address modulo 16 bytes.

    Raises `ArgumentTypeError` (a TypeError) for anything but a float32 array without a mask, for an `out` of another
    package or of JAX, for an axis or a thread count that is no whole number and for a `keepdims` that is no flag,
    `UsageError` (a ValueError) for an axis that does not exist or is named twice, an `out` that is read-only, of
    another shape or with elements that share memory, a thread count below 1 or one for an array on a GPU, and arrays
    that a GPU cannot sum, `DeviceError` where there is no such GPU, `CompileError` for sums that do not compile here,
    and `MemoryError`.
    """
    usual = (threads is None or (type(threads) is int and threads > 0)) and type(keepdims) is bool
    if type(x) is np.ndarray and out is None and usual and _plain(axis):
        # The common case, with the least overhead.
        plan = _plans.get((x.shape, x.strides, axis, keepdims))
        if plan is not None and x.dtype is _FLOAT32:
            result = _load().run(x, plan, cast("int | None", threads))
            return np.float32(result) if type(result) is float else result
    if type(x) is not np.ndarray:
        if _again is not None and out is None and threads is None and usual and _plain(axis):
            found = _again(x, axis, keepdims)
            if found is not None:
                return found
        if is_device_array(x):
            return _on_device(x, axis, out, keepdims, threads)
        if is_host_array(x):
            views = host_views("sum", {"x": x, "out": out})
            result = sum(views["x"], axis, out=views["out"], keepdims=keepdims, threads=threads)
            return like(x, result) if out is None else out
    array = float32_array("sum", "x", x)
    count = thread_count("sum", threads)
    axes, keep = _axes(axis, array.ndim), flag("sum", "keepdims", keepdims)
    plan = _plan(array, tuple(axes), keep)
    if _plain(axis):
        _plans[array.shape, array.strides, axis, keep] = plan
    target = None if out is None else _target(x, out, plan.shape)
    result = _load().run(array, plan, count)
    if target is None:
        return np.float32(result) if type(result) is float else result
    np.copyto(target, result)
    return out


def _plain(axis: object) -> bool:
    """Return whether an axis, or a tuple of them, can be used as the key of a plan: 1.0 would find the plan of 1."""
    return axis is None or type(axis) is int or (type(axis) is tuple and {*map(type, axis)} == _INTEGERS)


def _plan(array: Float32Array, axes: tuple[int, ...], keepdims: bool) -> SumPlan:
    key = (array.shape, array.strides, axes, keepdims)
    plan = _plans.get(key)
    if plan is None:
        require_room_to_import("gemmlab.dispatch.sum_plans")
        from gemmlab.dispatch.sum_plans import sum_plan

        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        plan = _plans[key] = sum_plan(array.shape, array.strides, axes, keepdims=keepdims)
    return plan


def _target(x: object, out: object, shape: tuple[int, ...]) -> Float32Array:
    """Return `out` as a view that a result of `shape` can be written to."""
    one_package("sum", {"x": x, "out": out})
    target = float32_array("sum", "out", out)
    if target.shape != shape:
        raise UsageError(f"sum: out has shape {target.shape}; the result has {shape}")
    if not target.flags.writeable:
        raise UsageError("sum: out is read-only")
    if folds(target.shape, target.strides):
        raise UsageError(f"sum: elements of out share memory with each other (strides {target.strides})")
    return target


def _on_device(x: Any, axis: object, out: object, keepdims: object, threads: object) -> Any:
    if threads is not None:
        raise UsageError("sum: threads are for arrays on the CPU; this one lies on a GPU")
    found = device_array(x)
    axes, keep = _axes(axis, len(found.shape)), flag("sum", "keepdims", keepdims)
    from gemmlab.dispatch.cuda_sum_calls import NO_KEY, device_sum
    from gemmlab.dispatch.cuda_sums_again import again

    global _again
    _again = again
    return device_sum(x, found, axes, keepdims=keep, out=out, axis=axis if _plain(axis) else NO_KEY)


def _axes(axis: object, ndim: int) -> list[int]:
    """Return the axes to sum along in ascending order, each as a number from 0 to `ndim - 1`; `None` stands for all."""
    several = isinstance(axis, Sequence) and not isinstance(axis, (str, bytes, bytearray))
    listed = range(ndim) if axis is None else axis if several else (axis,)
    found = []
    for each in cast("Sequence[Any]", listed):
        try:
            index = operator.index(each)
        except TypeError as error:
            raise ArgumentTypeError(f"sum: axis is {shown(each)}, not a whole number") from error
        if isinstance(each, bool):
            raise ArgumentTypeError(f"sum: axis is {each}, not a whole number")
        if not -ndim <= index < ndim:
            raise UsageError(f"sum: axis {shown(index)} of an array of {ndim} axes")
        found.append(index % ndim)
    if len(set(found)) < len(found):
        raise UsageError(f"sum: an axis is there twice in {shown(axis)}")
    return sorted(found)


def _load() -> CpuSums:
    """Return the compiled sums. The first call compiles them, or loads them from the cache."""
    global _sums
    if _sums is not None:
        return _sums
    with _lock:
        if _sums is None:
            require_room_to_import("gemmlab.dispatch.cpu_sums")
            from gemmlab.dispatch.cpu_sums import load_sums

            _sums = load_sums()
        return _sums
