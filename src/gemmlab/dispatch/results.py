"""The destination of a result on a GPU: an array of the caller's package, or memory of gemmlab.

If the package of the operands is unknown, the result is an array of gemmlab, which other packages can use by
`__cuda_array_interface__` and DLPack.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gemmlab.arrays.on_gpu import DLPACK_CUDA, DeviceArray
from gemmlab.arrays.packages import LEGACY_STREAM, package_of, stream_for
from gemmlab.devices import cuda_driver
from gemmlab.devices.device import Buffer

if TYPE_CHECKING:
    from gemmlab.devices.cuda import CudaDevice

_NO_STREAM = -1
"""DLPack's value of `stream` for which no stream has to wait."""


@dataclass(frozen=True, slots=True)
class Place:
    """The destination of a result."""

    array: Any
    """A float32 array, uninitialised."""
    pointer: int
    stream: int
    """The stream on which work on the array is queued."""


class DeviceResult:
    """A float32 array in C order in memory of gemmlab, computed on `stream`.

    A package that imports the array by DLPack names a stream of its own. That stream waits for `stream`.
    """

    def __init__(self, buffer: Buffer, shape: tuple[int, ...], stream: int, device: CudaDevice) -> None:
        self.shape = shape
        self._buffer, self._stream, self._device = buffer, stream, device

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": "<f4", "data": (self._buffer.address, False), "strides": None,
                "stream": self._stream, "version": 3}  # fmt: skip

    def __dlpack__(
        self, *, stream: int | None = None, dl_device: tuple[int, int] | None = None, **how: Any
    ) -> Any:  # fmt: skip
        if dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__():
            raise BufferError(f"the array stays on {self._device.id}")
        try:
            from cuda.core.utils import StridedMemoryView

            view: Any = StridedMemoryView.from_cuda_array_interface(self, stream_ptr=_NO_STREAM)
            capsule = view.__dlpack__(stream=_NO_STREAM, **how)
        except (ImportError, AttributeError) as error:
            raise BufferError(f"DLPack needs cuda-core 1.2 or newer ({error}): {cuda_driver.INSTALL}") from error
        if stream != _NO_STREAM and (waiting := stream or LEGACY_STREAM) != self._stream:
            with cuda_driver.preserved_context():
                self._device.activate()
                cuda_driver.order(cuda_driver.open_driver(), waiting, self._stream)
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return DLPACK_CUDA[0], self._device.ordinal


def place_for(value: Any, found: DeviceArray, shape: tuple[int, ...], device: CudaDevice) -> Place:
    """Allocate a result of `shape` on the GPU of the operand `value`; return it with the stream on which work is
    queued.

    `found` is that operand on the GPU. If its package is unknown, the stream is the one that the array names, or the
    default stream.
    """
    package, stream = package_of(value), stream_for(value, found)
    if package is not None:
        array = package.fresh(value, shape)()
        return Place(array, package.address(array), stream)
    nbytes = found.dtype.itemsize
    for extent in shape:
        nbytes *= extent
    buffer = device.allocate(nbytes)
    return Place(DeviceResult(buffer, shape, stream, device), buffer.address, stream)


def as_its_package_s(value: Any, result: Any) -> Any:
    """Return a result as an array of the package of the operand `value`, if that is Numba or follows the array API.

    For other packages a `DeviceResult` stays as it is, and so does a result of any other type. Call this function after
    all work that computes the result is queued.
    """
    if type(result) is not DeviceResult:
        return result
    if type(value).__module__.partition(".")[0] == "numba":
        return sys.modules["numba.cuda"].as_cuda_array(result, sync=False)
    namespace = getattr(value, "__array_namespace__", None)
    if namespace is None:
        return result
    make = getattr(namespace(), "from_dlpack", None)
    return result if make is None else make(result)
