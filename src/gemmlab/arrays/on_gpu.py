"""Arrays of other packages that lie on a GPU (torch, CuPy, Numba, JAX): their addresses and layouts.

`__cuda_array_interface__` is read if an array has it and it says when the array is ready, and also of torch's tensors
and of arrays without DLPack; otherwise DLPack is read.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gemmlab.core.errors import ArgumentTypeError, DeviceError

DLPACK_CUDA = (2, 13)
"""DLPack's device types of arrays that count as lying on an NVIDIA GPU: `kDLCUDA` and `kDLCUDAManaged`."""
UNKNOWN = -1
"""A value of `stream` for an array that does not name the stream on which work may still be queued."""
_LEGACY_STREAM = 1


@dataclass(frozen=True, slots=True)
class DeviceArray:
    """An array on a GPU. `owner` keeps it alive."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Strides in bytes."""
    dtype: np.dtype[Any]
    device: int | None
    """Ordinal of its GPU; `None` if the array does not say."""
    stream: int | None
    """Handle of the stream on which work on the array may be queued; `UNKNOWN` if the array does not name it, `None` if
    no work is queued.
    """
    read_only: bool = False
    owner: Any = field(default=None, repr=False, compare=False)
    borrowed: bool = False
    """True if its memory may be reused as soon as `owner` is freed, even while work on it is queued."""

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def contiguous(self) -> bool:
        """True if its elements follow each other in C order."""
        return self.nbytes == 0 or self.strides == c_strides(self.shape, self.dtype.itemsize) or _dense(self)


def is_device_array(value: Any) -> bool:
    """Return whether `value` is an array that lies on an NVIDIA GPU."""
    if value is None or isinstance(value, np.ndarray | np.generic):
        return False
    if is_tensor(value):
        # torch is slow to report that it has no such interface.
        return bool(value.is_cuda)
    try:
        if hasattr(value, "__cuda_array_interface__"):
            return True
    except Exception:  # noqa: BLE001 - whatever an array says that does not show its memory
        # A tensor that requires a gradient, say, lies on a GPU but has no interface; `device_array` gives the reason.
        return True
    return hasattr(value, "__dlpack_device__") and int(value.__dlpack_device__()[0]) in DLPACK_CUDA


def device_array(value: Any, name: str = "") -> DeviceArray:
    """Return the address and layout of an array on a GPU. Messages call it `name`, by default the array.

    Raises `ArgumentTypeError` if `value` is no such array, does not show its memory or has a mask or an unusable dtype,
    `DeviceError` if DLPack is to be read and the package cuda-core, which reads it, is missing.
    """
    negated = getattr(value, "is_neg", None)
    if negated is not None and negated():
        # torch exports the memory nevertheless.
        raise ArgumentTypeError(f"{name or 'the array'} {refusal(name or 'x', value)}")
    try:
        interface = value.__cuda_array_interface__
    except Exception as error:
        known = refusal(name or "x", value) if is_tensor(value) and value.is_cuda else None
        if known is None and isinstance(error, AttributeError):
            return _from_dlpack(value)
        reason = known or f"does not show its memory: {error}"
        raise ArgumentTypeError(f"{name or 'the array'} {reason}") from error
    found = _from_interface(interface, value)
    if not found.pointer and all(found.shape):
        known = refusal(name or "x", value) if is_tensor(value) else None
        raise ArgumentTypeError(f"{name or 'the array'} {known or 'has elements, but no address'}")
    if found.stream != UNKNOWN or is_tensor(value) or not hasattr(value, "__dlpack__"):
        return found
    # JAX's interface neither names a stream nor waits; DLPack, given a stream of ours, makes it wait.
    return replace(_from_dlpack(value), read_only=found.read_only)


def is_tensor(value: object) -> bool:
    """Return whether `value` is a tensor of torch, on any device."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _from_interface(interface: dict[str, Any], owner: Any) -> DeviceArray:
    pointer, read_only = interface["data"]
    dtype = _native(np.dtype(interface["typestr"]))
    shape = tuple(int(extent) for extent in interface["shape"])
    if interface.get("mask") is not None:
        raise ArgumentTypeError("a masked array on a GPU cannot be used")
    strides = interface.get("strides")
    return DeviceArray(
        pointer=int(pointer or 0),
        shape=shape,
        strides=c_strides(shape, dtype.itemsize) if strides is None else tuple(int(step) for step in strides),
        dtype=dtype,
        device=_device(owner),
        # From version 3 on None means that nothing is queued; torch still implements version 2.
        stream=interface.get("stream") if interface.get("version", 0) >= 3 else UNKNOWN,
        read_only=bool(read_only),
        owner=owner,
    )


def _device(owner: Any) -> int | None:
    """Return the GPU's ordinal by DLPack; `None` for an array whose DLPack is absent or lacks it."""
    try:
        kind, ordinal = owner.__dlpack_device__()
        return int(ordinal) if int(kind) in DLPACK_CUDA else None
    except Exception:  # noqa: BLE001 - whatever an array says that is not to be exported
        return None


def _from_dlpack(value: Any) -> DeviceArray:
    if not is_device_array(value):
        raise ArgumentTypeError(f"{type(value).__module__}.{type(value).__qualname__} is not an array on a GPU")
    try:
        from cuda.core.utils import StridedMemoryView
    except ImportError as error:
        raise DeviceError(f"arrays by DLPack need cuda-core ({error}): pip install 'gemmlab[cuda13]'") from error
    # The producer makes the legacy default stream wait; our own streams wait for that one.
    view: Any = StridedMemoryView(value, _LEGACY_STREAM)
    if view.dtype is None:
        raise ArgumentTypeError("the array's dtype has no NumPy counterpart")
    dtype = _native(np.dtype(view.dtype))
    shape = tuple(view.shape)
    counted = view.strides
    strides = c_strides(shape, dtype.itemsize) if counted is None else tuple(n * dtype.itemsize for n in counted)
    return DeviceArray(
        view.ptr, shape, strides, dtype, view.device_id, _LEGACY_STREAM, bool(view.readonly), view, borrowed=True
    )


def _native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if not dtype.isnative or dtype.hasobject:
        raise ArgumentTypeError(f"arrays of {dtype} on a GPU cannot be used")
    return dtype


def c_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the strides of C order: in bytes if `itemsize` is the bytes of an element, in elements if it is 1."""
    strides = []
    for extent in reversed(shape):
        strides.append(itemsize)
        itemsize *= max(1, extent)
    return tuple(reversed(strides))


def _dense(array: DeviceArray) -> bool:
    """Return whether an array is C-contiguous apart from axes of extent 1, whose stride means nothing."""
    axes = [(n, step) for n, step in zip(array.shape, array.strides, strict=True) if n != 1]
    extents = tuple(n for n, _ in axes)
    return tuple(step for _, step in axes) == c_strides(extents, array.dtype.itemsize)


def refusal(name: str, tensor: Any, call: str = "") -> str | None:
    """Return the reason why torch does not export a tensor's memory, and the remedy; `None` if the reason is unknown.

    The text follows the name of the operand, in place of torch's message about `numpy()`.
    """
    if type(tensor).__name__ == "DTensor":
        return "is a DTensor; gemmlab.distributed.gemm multiplies these"
    kind = "cuda" if tensor.is_cuda else tensor.device.type
    if kind == "meta":
        return "is a meta tensor: it has a shape and no data"
    if kind not in ("cpu", "cuda"):
        return f"lies on {tensor.device}; tensors must lie on the CPU or an NVIDIA GPU"
    layout = str(getattr(tensor, "layout", "torch.strided"))
    if layout != "torch.strided":
        return f"has layout {layout}, not strided; {name}.to_dense() converts it"
    if tensor.requires_grad:
        # The operator has neither `out` nor sums.
        learns = ", and gemmlab.torch.gemm has gradients" if call == "gemm" and name != "out" else ""
        return f"requires a gradient, which would be lost; {name}.detach() goes without{learns}"
    if hasattr(tensor, "is_neg") and tensor.is_neg():
        # The imaginary part of a conjugate: memory holds the opposite.
        return f"is negated only when torch reads it; {name}.resolve_neg() does it now"
    return None
