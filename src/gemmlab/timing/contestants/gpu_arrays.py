"""A contestant's operands as arrays on the GPU: torch's, CuPy's, or objects with only `__cuda_array_interface__`.

Each package works on the device and the stream of the worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.device import Buffer
from gemmlab.timing.contestants.contestant import Work
from gemmlab.timing.contestants.places import Place, stored


class Arrays(Protocol):
    """A package whose arrays can be views of the worker's buffers."""

    name: str

    def array(self, buffer: Buffer, place: Place) -> Any:
        """Return a view of a float32 buffer with the shape and strides of `place`."""


def operand(arrays: Arrays, work: Work, buffers: Mapping[str, Buffer], name: str) -> Any:
    """Return operand `name` as an array: as it is stored, or a transposed view if the problem transposes it."""
    array = arrays.array(buffers[name], stored(work, name))
    return array.swapaxes(-1, -2) if work.scalars.get(f"trans_{name}", 0) else array


class TorchArrays:
    """Tensors of torch. Its current stream is set to the worker's."""

    name = "torch"

    def __init__(self, device: CudaDevice) -> None:
        self.torch: Any = import_module("torch")
        self.torch.cuda.set_device(device.ordinal)
        self.torch.cuda.set_stream(self.torch.cuda.ExternalStream(int(device.stream), device=device.ordinal))
        self.where = f"cuda:{device.ordinal}"

    def array(self, buffer: Buffer, place: Place) -> Any:
        """Return a view of a float32 buffer with the shape and strides of `place`."""
        words = self.torch.as_tensor(buffer, device=self.where).view(self.torch.float32)
        return self.torch.as_strided(words, place.shape, place.strides, place.first)


class CupyArrays:
    """Arrays of CuPy. Its current stream is set to the worker's."""

    name = "cupy"

    def __init__(self, device: CudaDevice) -> None:
        self.cupy: Any = import_module("cupy")
        self.cupy.cuda.Device(device.ordinal).use()
        self.cupy.cuda.ExternalStream(int(device.stream), device.ordinal).use()

    def array(self, buffer: Buffer, place: Place) -> Any:
        """Return a view of a float32 buffer with the shape and strides of `place`."""
        words = self.cupy.asarray(buffer).view(self.cupy.float32)
        strides = tuple(4 * step for step in place.strides)
        return self.cupy.lib.stride_tricks.as_strided(words[place.first :], place.shape, strides)


@dataclass(frozen=True, slots=True)
class BareArray:
    """A float32 array of no package: only `__cuda_array_interface__`, which names the worker's stream."""

    buffer: Buffer
    place: Place
    stream: int

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        place = self.place
        data = (self.buffer.address + 4 * place.first, False)
        return {"shape": place.shape, "strides": tuple(4 * step for step in place.strides), "typestr": "<f4",
                "data": data, "stream": self.stream, "version": 3}  # fmt: skip


class BareArrays:
    """Arrays of no package: objects with only `__cuda_array_interface__`."""

    name = "__cuda_array_interface__"

    def __init__(self, device: CudaDevice) -> None:
        self._stream = int(device.stream)

    def array(self, buffer: Buffer, place: Place) -> BareArray:
        """Return a view of a float32 buffer with the shape and strides of `place`."""
        return BareArray(buffer, place, self._stream)


def installed_arrays(device: CudaDevice) -> Arrays:
    """Return the kind of arrays that most callers have: torch's if it is installed, else CuPy's, else bare ones."""
    if find_spec("torch") is not None:
        return TorchArrays(device)
    return CupyArrays(device) if find_spec("cupy") is not None else BareArrays(device)
