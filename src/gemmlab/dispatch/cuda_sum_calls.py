"""One call of `gemmlab.sum` for an array on a GPU: checks, the place of the result, the launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gemmlab.arrays.on_gpu import DeviceArray, device_array, is_device_array
from gemmlab.arrays.on_host import one_package
from gemmlab.arrays.packages import package_of, stream_for
from gemmlab.core.argument_checks import dtype_error
from gemmlab.core.errors import ArgumentTypeError, DeviceError, UsageError
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.core.words import shown
from gemmlab.devices.cuda_driver import Driver, open_driver, preserved_context
from gemmlab.devices.cuda_memory import ordinal_of
from gemmlab.dispatch.axis_plans import result_shape
from gemmlab.dispatch.cuda_sums import sums_on
from gemmlab.dispatch.cuda_sums_again import remember
from gemmlab.dispatch.lending import hold, wait_for
from gemmlab.dispatch.request import folds
from gemmlab.dispatch.results import as_its_package_s, place_for

NO_KEY = object()
"""Stands for an `axis` under which no call is stored: a list, which is not hashable, or 1.0, which equals 1."""


def device_sum(
    x: Any, found: DeviceArray, axes: Sequence[int], *, keepdims: bool, out: Any = None, axis: Any = NO_KEY
) -> Any:  # fmt: skip
    """Return the sums of `x` along `axes`, none negative, as an array of its package, or `out` filled with them.

    If `x` is of neither torch nor CuPy, `as_its_package_s` makes the array. `found` describes the memory of `x`. `axis`
    is the caller's form of `axes`, under which later calls are found.

    Raises `ArgumentTypeError`, `UsageError`, `DeviceError` and `CompileError`, which name the remedy.
    """
    package = package_of(x)
    if found.dtype != np.float32:
        raise dtype_error("sum", "x", found.dtype, package.to_float32 if package else "")
    shape = result_shape(found.shape, axes, keepdims=keepdims)
    target = None if out is None else _target(x, out, shape)
    if any(step % FLOAT_BYTES for step in found.strides):
        raise UsageError(f"sum: x has strides {found.strides} bytes; they must be multiples of {FLOAT_BYTES}")
    in_place = target is not None and _apart(target) and not _overlap(target, found)
    with preserved_context():
        driver = open_driver()
        sums = sums_on(_ordinal(driver, found, target) or 0)
        if target is not None and in_place:
            result, address, stream = out, target.pointer, stream_for(x, found)
            wait_for(driver, out, target, stream)
        else:
            place = place_for(x, found, shape, sums.device)
            result, address, stream = place.array, place.pointer, place.stream
        strides = target.strides if target is not None and in_place else None
        if 0 not in shape:
            prepared = sums.prepared(found, axes, keepdims=keepdims, out_strides=strides)
            needs = prepared.needs
            fresh = None if package is None or needs is None else needs.fresh(package, x)
            sums.device.activate()
            sums.run(prepared, found.pointer, address, stream, package, fresh)
            hold(driver, [found] if target is None else [found, target], stream)
            if target is None and package is not None and axis is not NO_KEY:
                remember(x, axis, keepdims, package, sums, prepared)
    if target is None:
        return as_its_package_s(x, result)
    if not in_place:
        _assign(out, result)
    return out


def _target(x: Any, out: Any, shape: tuple[int, ...]) -> DeviceArray:
    """Return the memory of `out`.

    Raises `ArgumentTypeError` or `UsageError` if no result of `shape` can be written there.
    """
    one_package("sum", {"x": x, "out": out})
    if not is_device_array(out):
        kind = f"{type(out).__module__}.{type(out).__qualname__}"
        raise ArgumentTypeError(f"sum: x lies on a GPU and out, {kind}, does not; out must be an array like x")
    target = device_array(out)
    if target.dtype != np.float32:
        raise dtype_error("sum", "out", target.dtype)
    if target.shape != shape:
        raise UsageError(f"sum: out has shape {shown(target.shape)}; the result has {shape}")
    if target.read_only:
        raise UsageError("sum: out is read-only")
    if folds(target.shape, target.strides):
        raise UsageError(f"sum: elements of out share memory with each other (strides {target.strides})")
    return target


def _assign(out: Any, result: Any) -> None:
    package = package_of(out)
    if package is None:
        raise UsageError("sum: out must not share memory with x, and its elements must not overlap")
    package.put(out, result)


def _apart(target: DeviceArray) -> bool:
    """Return whether kernels can write an array: strides are positive multiples of 4 bytes, and no elements overlap."""
    axes = sorted((step, extent) for extent, step in zip(target.shape, target.strides, strict=True) if extent > 1)
    end = FLOAT_BYTES
    for step, extent in axes:
        if step < end or step % FLOAT_BYTES:
            return False
        end = step * extent
    return True


def _overlap(one: DeviceArray, other: DeviceArray) -> bool:
    (low, high), (first, last) = _span(one), _span(other)
    return low < last and first < high


def _span(array: DeviceArray) -> tuple[int, int]:
    """Return the addresses of an array's first byte and of the byte behind its last; both the same if it is empty."""
    if not math.prod(array.shape):
        return array.pointer, array.pointer
    ways = [(extent - 1) * step for extent, step in zip(array.shape, array.strides, strict=True)]
    return (
        array.pointer + sum(way for way in ways if way < 0),
        array.pointer + sum(way for way in ways if way > 0) + array.dtype.itemsize,
    )


def _ordinal(driver: Driver, found: DeviceArray, target: DeviceArray | None) -> int | None:
    """Return the number of the GPU that the arrays lie on, `None` if it is unknown. Raises `DeviceError` for two."""
    here = ordinal_of(driver, found)
    there = here if target is None else ordinal_of(driver, target)
    if None not in (here, there) and here != there:
        raise DeviceError(f"sum: x lies on cuda:{here}, out lies on cuda:{there}; one GPU is needed")
    return here if here is not None else there
