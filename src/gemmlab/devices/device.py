"""The protocols of devices, which compile and run kernels. `Device` is that of every device; the others are
optional.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from gemmlab.core.counters import Observation
from gemmlab.core.program import Artifact, Launch, Program
from gemmlab.core.tensor_map import TiledMap
from gemmlab.devices.device_name import DeviceName

Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """Facts about a device, as JSON values so that records can store them."""

    id: str
    """The device's name as text: `"cpu"`, `"cuda:0"`, `"emulated:sm_90"`."""
    name: str
    facts: Mapping[str, Any] = field(default_factory=dict)


class Buffer(Protocol):
    """Memory on a device, `nbytes` long; a kernel receives `address`."""

    @property
    def address(self) -> int: ...

    @property
    def nbytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the buffer `whole`: `nbytes` bytes from `offset` bytes on. A launch accepts it as a buffer."""

    whole: Buffer
    offset: int
    nbytes: int

    @property
    def address(self) -> int:
        """The address that a kernel receives."""
        return self.whole.address + self.offset


class Loaded(Protocol):
    """An artifact that is loaded on one device and can be launched there."""

    @property
    def artifact(self) -> Artifact: ...


class Device(Protocol):
    """The interface of a device: compile, hold memory, run and time. It knows no kernels, operations or problems.

    A device accepts only its own buffers and loaded code, so those parameters have the type `Any` here.
    """

    @property
    def device_name(self) -> DeviceName: ...

    @property
    def id(self) -> str:
        """The name as text, for records and messages: `"cpu"`, `"cuda:0"`, `"emulated:sm_90"`."""

    @property
    def family(self) -> str:
        """The family of the device: `"cpu"`, `"cuda"` or `"emulated"`."""

    @property
    def kernels(self) -> str:
        """The kind of kernels that run on the device: `"cpu"` or `"cuda"`, as `Kernel.device` names them."""

    def describe(self) -> DeviceInfo:
        """Return the device's name and facts about it, such as limits."""

    def target(self, config: Mapping[str, int]) -> str:
        """Return the compilation target for a configuration. On a CPU its `LANES` is the vector width, on a GPU all
        configurations have the same target.
        """

    def build(self, program: Program) -> Artifact:
        """Compile a program, or fetch its code from the cache.

        Raises `CompileError`, and `UsageError` or `DeviceError` for a program that the device cannot run.
        """

    def load(self, artifact: Artifact) -> Any:
        """Load an artifact, so that it can be launched."""

    def allocate(self, nbytes: int) -> Buffer:
        """Return uninitialised memory; `MemoryError` if there is too little."""

    def upload(self, array: npt.NDArray[Any]) -> Buffer:
        """Return a buffer with a copy of a C-contiguous array; on a CPU, with the array's own memory."""

    def free(self, buffer: Any) -> None:
        """Free a buffer that nothing will use again. Without this call each device frees memory by its own rule."""

    def download(self, buffer: Any, out: npt.NDArray[Any]) -> None:
        """Copy a buffer into a C-contiguous array of the same size."""

    def launch(self, loaded: Any, launch: Launch) -> None:
        """Run a loaded kernel once and wait for its end."""

    def time(self, loaded: Any, launch: Launch, repeats: int, inner: int = 1) -> list[float]:
        """Return `repeats` times of one run of a loaded kernel in microseconds, each the mean over `inner` runs."""


@runtime_checkable
class PeakDevice(Protocol):
    """A device whose FMA peak can be measured."""

    def measure_peak(self, threads: int = 1, seconds: float = 0.2) -> float:
        """Measure float32 GFLOP/s of pure fused multiply-adds for `seconds`. A GPU ignores `threads`."""


@runtime_checkable
class ReadingDevice(Protocol):
    """A device whose rate of reading memory can be measured."""

    def measure_read(self, threads: int = 1, seconds: float = 0.2) -> float:
        """Measure, for `seconds`, the 10^9 bytes a second of reading memory far larger than the caches. A GPU ignores
        `threads`.
        """


@runtime_checkable
class SequenceDevice(Protocol):
    """A device that times consecutive launches as one."""

    def time_launches(self, loaded: Any, launches: Sequence[Launch], repeats: int, inner: int = 1) -> list[float]:
        """Return `repeats` times in microseconds of a run of all launches, one after the other.

        Each time is the mean over `inner` such runs.
        """


@dataclass(frozen=True, slots=True)
class Clocks:
    """A GPU's clocks at one moment."""

    sm_mhz: float
    memory_mhz: float
    throttle: tuple[str, ...]
    """Reasons that lower the clock, such as `"power cap"`; empty if there are none."""


@runtime_checkable
class ClockedDevice(Protocol):
    """A device that reports its clocks."""

    def clocks(self) -> Clocks | None:
        """Return the current clocks; `None` if they cannot be read."""


@runtime_checkable
class CountingDevice(Protocol):
    """A device that counts a kernel's operations while it runs, and detects its errors (hazards)."""

    def observe(self, loaded: Any, launch: Launch, *, races: bool = False, filling: int | None = None) -> Observation:
        """Run once and return counters and hazards.

        With `races`, races in global memory are detected too. `filling` is the byte that unwritten memory reads as; if
        `None`, that memory is left as it is. A run with a filling repeats another one, so its printed text is only
        returned.
        """


@runtime_checkable
class SparseDevice(Protocol):
    """A device whose buffers are read and written in parts; they may be much larger than the data in them."""

    def allocate_sparse(self, nbytes: int) -> Buffer:
        """Return memory in which reading an unwritten float gives NaN or is reported as a hazard.

        Raises `MemoryError` if there is too little.
        """

    def write(self, window: Window, array: npt.NDArray[Any]) -> None:
        """Copy a C-contiguous array into a part of a buffer; both must have the same size."""

    def read(self, window: Window, out: npt.NDArray[Any]) -> None:
        """Copy a part of a buffer into a C-contiguous array; both must have the same size."""

    def free(self, buffer: Any) -> None:
        """Free a buffer."""


@runtime_checkable
class SessionDevice(Protocol):
    """A device of which there may be any number of copies, each with separate memory."""

    def session(self) -> Device:
        """Return a copy of the device with separate, empty memory."""


def own(device: Device) -> Device:
    """Return a copy of `device` with separate memory if it is a `SessionDevice`, else `device` itself."""
    return device.session() if isinstance(device, SessionDevice) else device


@runtime_checkable
class TensorMapDevice(Protocol):
    """A device with tensor maps, by which kernels copy boxes of tensors."""

    def tensor_map(self, tensor: TiledMap) -> bytes:
        """Return the 128 bytes of a tensor map. Raises `UsageError` or `DeviceError` for a map that the driver
        refuses.
        """


@runtime_checkable
class TextureDevice(Protocol):
    """A device with one-dimensional textures over linear memory, which kernels read through `tex1Dfetch`."""

    @property
    def most_texels(self) -> int:
        """The most texels of one texture."""

    def linear_texture(self, buffer: Any, channels: int = 4, element: str = "f32") -> int:
        """Return the handle of a texture over a buffer (see `texture.texels_of`); it lives as long as the buffer."""
