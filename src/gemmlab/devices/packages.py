"""Packages whose arrays lie on a GPU: the stream each one works on at the moment, and a fresh array of its kind.

An array of a package that is not known here is answered with one of ours, which other packages see through
`__cuda_array_interface__`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gemmlab.devices.device import Buffer
from gemmlab.devices.interop import UNKNOWN, DeviceArray

LEGACY_STREAM, PER_THREAD_STREAM = 1, 2
"""Handles that are no streams of their own: what work without a stream goes to, for all threads or for each."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a result goes."""

    array: Any
    """Float32, uninitialised."""
    pointer: int
    stream: int
    """Work on it is queued there."""


@dataclass(frozen=True, slots=True)
class Package:
    """One package, and what its users write."""

    name: str
    kind: str
    """Its class of arrays."""
    place: Callable[[Any, Any, tuple[int, ...]], Place]
    contiguous: str
    to_float32: str
    along_axis: str


class DeviceResult:
    """A float32 array in memory of ours, made on `stream`."""

    def __init__(self, buffer: Buffer, shape: tuple[int, ...], stream: int) -> None:
        self.shape = shape
        self._buffer, self._stream = buffer, stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": "<f4", "data": (self._buffer.address, False), "strides": None,
                "stream": self._stream, "version": 3}  # fmt: skip


def package_of(value: object) -> Package | None:
    """Whose array this is; `None` for a package that is not known here."""
    for package in _PACKAGES:
        module = sys.modules.get(package.name)
        if module is not None and isinstance(value, getattr(module, package.kind)):
            return package
    return None


def place_for(value: Any, found: DeviceArray, shape: tuple[int, ...], allocate: Callable[[int], Buffer]) -> Place:
    """Room for a result of `shape` beside the array `value`, and the stream on which the caller expects work.

    For a package that is not known that is the stream its array names, or the default stream.
    """
    package = package_of(value)
    if package is not None:
        placed = package.place(sys.modules[package.name], value, shape)
        return placed if placed.stream else Place(placed.array, placed.pointer, LEGACY_STREAM)
    stream = LEGACY_STREAM if found.stream in (None, UNKNOWN) else found.stream
    nbytes = found.dtype.itemsize
    for extent in shape:
        nbytes *= extent
    buffer = allocate(nbytes)
    return Place(DeviceResult(buffer, shape, stream or LEGACY_STREAM), buffer.address, stream or LEGACY_STREAM)


def _torch(torch: Any, x: Any, shape: tuple[int, ...]) -> Place:
    out = torch.empty(shape, dtype=torch.float32, device=x.device)
    return Place(out, out.data_ptr(), torch.cuda.current_stream(x.device).cuda_stream)


def _cupy(cupy: Any, x: Any, shape: tuple[int, ...]) -> Place:
    with x.device:
        out = cupy.empty(shape, cupy.float32)
        return Place(out, out.data.ptr, cupy.cuda.get_current_stream().ptr)


_PACKAGES = (
    Package("torch", "Tensor", _torch, "x.contiguous()", "x.float()", "torch.sum(x, dim=...)"),
    Package("cupy", "ndarray", _cupy, "cupy.ascontiguousarray(x)", "x.astype(cupy.float32)", "cupy.sum(x, axis=...)"),
)
