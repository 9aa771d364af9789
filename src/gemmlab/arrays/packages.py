"""Packages whose arrays may lie on a GPU (torch, CuPy): their current streams, and new arrays of their kind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

from gemmlab.arrays.on_gpu import UNKNOWN, DeviceArray, c_strides

LEGACY_STREAM, PER_THREAD_STREAM = 1, 2
"""Handles of the default streams, which take work without a stream: the one of all threads, and one per thread."""


@dataclass(frozen=True, slots=True)
class Package:
    """One package, with operations on its arrays as its users would write them. The first argument of `maker`,
    `stream`, `copy` and `assign` is the imported package.
    """

    name: str
    kind: str
    """The name of its array class."""
    maker: Callable[[Any, Any, tuple[int, ...]], Callable[[], Any]]
    """Function (package, array, shape) that returns a function, which makes a new float32 array of this shape on the
    array's GPU, uninitialised and in C order.
    """
    stream: Callable[[Any, Any], Callable[[], int]]
    """Function (package, array) that returns a function, which returns the handle of the current stream of the array's
    device.
    """
    copy: Callable[[Any, Any], Any]
    """Function (package, array) that returns the array if its elements are in C order, else a copy in C order, made on
    the current stream.
    """
    assign: Callable[[Any, Any, Any], None]
    """Function (package, to, from) that copies elements on the current stream, with broadcasting."""
    layout: Callable[[Any], Hashable]
    """Function (array) that returns all properties, except the address, that decide whether and how the array can be
    used.
    """
    address: Callable[[Any], int]
    to_float32: str
    """The expression that converts an array `x` to float32, for messages."""

    def contiguous_copy(self, value: Any) -> Any:
        """Return a copy in C order, or the array itself if its elements are in that order."""
        return self.copy(sys.modules[self.name], value)

    def fresh(self, beside: Any, shape: tuple[int, ...]) -> Callable[[], Any]:
        """Return a function that makes a new float32 array of that shape on the GPU of `beside`, uninitialised and in C
        order.
        """
        return self.maker(sys.modules[self.name], beside, shape)

    def current_stream(self, value: Any) -> Callable[[], int]:
        """Return a function that gives the handle of the current stream of the array's device."""
        return self.stream(sys.modules[self.name], value)

    def put(self, to: Any, source: Any) -> None:
        """Copy elements into the array `to` on the current stream, with broadcasting."""
        self.assign(sys.modules[self.name], to, source)


def package_of(value: object) -> Package | None:
    """Return the `Package` of an array of torch or CuPy; `None` for any other value."""
    for package in _PACKAGES:
        module = sys.modules.get(package.name)
        if module is not None and isinstance(value, getattr(module, package.kind)):
            return package
    return None


def memory_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions by which allocators say that a GPU has too little memory left.

    CuPy's is a `MemoryError`, torch's is not.
    """
    torch = sys.modules.get("torch")
    found = getattr(torch, "OutOfMemoryError", None) or getattr(getattr(torch, "cuda", None), "OutOfMemoryError", None)
    return (MemoryError,) if found is None else (MemoryError, found)


def stream_for(value: Any, found: DeviceArray) -> int:
    """Return the handle of the stream on which the caller expects work on an array: the package's current stream, or
    for an unknown package the one that the array names; the legacy default stream if it names none.
    """
    package = package_of(value)
    if package is not None:
        return package.current_stream(value)() or LEGACY_STREAM
    return LEGACY_STREAM if found.stream in (None, UNKNOWN) else found.stream or LEGACY_STREAM


def _torch_maker(torch: Any, x: Any, shape: tuple[int, ...]) -> Callable[[], Any]:
    # The fastest of torch's functions for this.
    return partial(torch.empty_strided, shape, c_strides(shape, 1), dtype=torch.float32, device=x.device)


def _torch_stream(torch: Any, x: Any) -> Callable[[], int]:
    # torch's own compiler calls this; the public function first makes an object of the stream.
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # noqa: SLF001 - and the public way is there without it
    if raw is not None:
        return partial(raw, x.get_device())
    current, device = torch.cuda.current_stream, x.device
    return lambda: int(current(device).cuda_stream)


def _torch_assign(torch: Any, to: Any, source: Any) -> None:
    with torch.no_grad():
        to.copy_(source)


def _torch_layout(x: Any) -> Hashable:
    return x.shape, x.stride(), x.dtype, x.get_device(), x.requires_grad, x.is_neg()


def _cupy_maker(cupy: Any, x: Any, shape: tuple[int, ...]) -> Callable[[], Any]:
    ndarray, float32, current, device = cupy.ndarray, cupy.float32, cupy.cuda.runtime.getDevice, x.device

    def make() -> Any:
        if current() == device.id:
            return ndarray(shape, float32)
        with device:
            return ndarray(shape, float32)

    return make


def _cupy_stream(cupy: Any, x: Any) -> Callable[[], int]:
    current, device = cupy.cuda.get_current_stream, x.device.id
    return lambda: int(current(device).ptr)


def _cupy_copy(cupy: Any, x: Any) -> Any:
    with x.device:
        return cupy.ascontiguousarray(x)


def _cupy_assign(cupy: Any, to: Any, source: Any) -> None:  # noqa: ARG001 - as the others
    with to.device:
        to[...] = source


def _cupy_layout(x: Any) -> Hashable:
    return x.shape, x.strides, x.dtype, x.data.device_id


_PACKAGES = (
    Package(
        "torch", "Tensor", _torch_maker, _torch_stream, lambda _torch, x: x.contiguous(), _torch_assign,
        _torch_layout, lambda x: x.data_ptr(),
        "x.float()",
    ),
    Package(
        "cupy", "ndarray", _cupy_maker, _cupy_stream, _cupy_copy, _cupy_assign,
        _cupy_layout, lambda x: x.data.ptr,
        "x.astype(cupy.float32)",
    ),
)  # fmt: skip
