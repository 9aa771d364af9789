"""Arrays on a GPU as NumPy views that must not be read: shape, strides and address of device memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from gemmlab.arrays.on_gpu import DeviceArray, device_array, is_device_array
from gemmlab.arrays.packages import package_of
from gemmlab.core.argument_checks import dtype_error
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.dispatch.opaque_array import OpaqueArray
from gemmlab.dispatch.request import Operand
from gemmlab.dispatch.storage import readable

Float32Array = npt.NDArray[np.float32]
_ANYWHERE = 1 << 12
"""An aligned address for arrays that exist only as a description."""


@dataclass(frozen=True, slots=True)
class _Interface:
    __array_interface__: dict[str, Any]


def shadow(found: DeviceArray) -> Float32Array:
    """Return a float32 view with the shape, strides and address of an array on a GPU; without the address if empty."""
    if math.prod(found.shape) == 0:
        return np.empty(found.shape, np.float32)
    described = {
        "shape": found.shape, "strides": found.strides, "typestr": np.dtype(np.float32).str,
        "data": (found.pointer, found.read_only), "version": 3,
    }  # fmt: skip
    return cast("Float32Array", np.asarray(_Interface(described)).view(OpaqueArray))


def packed(shape: tuple[int, ...], pointer: int = _ANYWHERE) -> Float32Array:
    """Return a float32 view of this shape in C order over the memory at `pointer`; it must not be read."""
    strides = tuple(4 * math.prod(shape[index + 1 :]) for index in range(len(shape)))
    return shadow(DeviceArray(pointer, shape, strides, np.dtype(np.float32), None, None))


def device_operand(call: str, name: str, value: Any) -> Operand:
    """Return an array on a GPU as an operand. Raises as `device_array_of` does."""
    found = device_array_of(call, name, value)
    return Operand(shadow(found), found)


def device_array_of(call: str, name: str, value: Any) -> DeviceArray:
    """Return the address, shape and strides of an operand on a GPU.

    Raises `ArgumentTypeError` for an array that lies elsewhere or has another dtype, and for a read-only `out`.
    """
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if not is_device_array(value):
        raise ArgumentTypeError(f"{call}: {name} is {kind}, which lies on no GPU; other operands of this call do")
    found = device_array(value, name)
    if found.dtype != np.float32:
        package = package_of(value)
        raise dtype_error(call, name, found.dtype, package.to_float32 if package else "")
    if name == "out" and found.read_only:
        # JAX's arrays are always read-only.
        raise ArgumentTypeError(f"{call}: out, a {kind} on a GPU, is read-only")
    return found


def in_place(operand: Float32Array) -> bool:
    """Return whether kernels can read an operand's matrices in place. The first matrix of a stack decides."""
    return operand.size == 0 or readable(operand[(0,) * (operand.ndim - 2)])


def copied(name: str, value: Any) -> Any:
    """Return a contiguous copy by the array's own package, on its stream; `UsageError` if the package is not known."""
    package = package_of(value)
    if package is None:
        raise UsageError(f"gemm: rows or columns of {name} must be contiguous; pass a contiguous copy")
    return package.contiguous_copy(value)
