"""The protocol every device implements: where kernels run. One file in this folder is one device."""

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
    """`"cpu"`, `"cuda:0"`, `"emulated:sm_90"`."""
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
    """Part of a buffer, from `offset` bytes on; itself a buffer for launches."""

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
        """`"cpu"`, `"cuda"` or `"emulated"`."""

    @property
    def kernels(self) -> str:
        """The kernels that run there: `"cpu"` or `"cuda"`, as `Kernel.device` names them."""

    def describe(self) -> DeviceInfo:
        """Return name, limits and peaks."""

    def target(self, config: Mapping[str, int]) -> str:
        """Return the compilation target for a configuration (a `LANES` parameter sets the CPU vector width)."""

    def build(self, program: Program) -> Artifact:
        """Compile, or fetch from the cache. Raises `CompileError`."""

    def load(self, artifact: Artifact) -> Any:
        """Load an artifact, so that it can be launched."""

    def allocate(self, nbytes: int) -> Buffer:
        """Uninitialised memory; `MemoryError` when there is none."""

    def upload(self, array: npt.NDArray[Any]) -> Buffer:
        """Return a buffer with a copy of a C-contiguous array; on a CPU, with the array's own memory."""

    def free(self, buffer: Any) -> None:
        """Free a buffer that nothing will use again. Otherwise each device has its own rule for freeing memory."""

    def download(self, buffer: Any, out: npt.NDArray[Any]) -> None:
        """Copy a buffer into a C-contiguous array of the same size."""

    def launch(self, loaded: Any, launch: Launch) -> None:
        """Run once and wait for the end."""

    def time(self, loaded: Any, launch: Launch, repeats: int, inner: int = 1) -> list[float]:
        """Return `repeats` times of one run in microseconds, each the mean over `inner` runs in a row."""


@runtime_checkable
class PeakDevice(Protocol):
    """A device whose FMA peak can be measured."""

    def measure_peak(self, threads: int = 1, seconds: float = 0.2) -> float:
        """Measure float32 GFLOP/s of pure fused multiply-adds; `threads` matters only for devices that compute on this
        machine's threads.
        """


@runtime_checkable
class ReadingDevice(Protocol):
    """A device whose rate of reading memory can be measured."""

    def measure_read(self, threads: int = 1, seconds: float = 0.2) -> float:
        """Measure 10^9 bytes a second of reading memory far larger than the caches; `threads` as for `PeakDevice`."""


@runtime_checkable
class SequenceDevice(Protocol):
    """A device that times consecutive launches as one."""

    def time_launches(self, loaded: Any, launches: Sequence[Launch], repeats: int, inner: int = 1) -> list[float]:
        """Return `repeats` times of all of them in a row in microseconds, each the mean over `inner` such runs."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """Clocks at one moment."""

    sm_mhz: float
    memory_mhz: float
    throttle: tuple[str, ...]
    """Reasons why the clock is below its maximum; empty if there are none."""


@runtime_checkable
class ClockedDevice(Protocol):
    """A device that reports its clocks."""

    def clocks(self) -> Clocks | None:
        """Return the current clocks; `None` if they cannot be read."""


@runtime_checkable
class CountingDevice(Protocol):
    """A device that counts a kernel's operations while it runs, and detects accesses outside of its buffers."""

    def observe(self, loaded: Any, launch: Launch, *, races: bool = False, filling: int | None = None) -> Observation:
        """Run once, as `launch` does, and return counters and errors.

        With `races`, races in global memory are also detected on devices that do not always do so. `filling` is the
        byte that unwritten memory holds.
        """


@runtime_checkable
class SparseDevice(Protocol):
    """A device whose memory is read and written in parts; its allocations may be much larger than the data in them."""

    def allocate_sparse(self, nbytes: int) -> Buffer:
        """Return memory in which reading an unwritten float gives NaN or is reported as a hazard.

        Raises `MemoryError`.
        """

    def write(self, window: Window, array: npt.NDArray[Any]) -> None:
        """Copy a C-contiguous array into a part of a buffer of the same size."""

    def read(self, window: Window, out: npt.NDArray[Any]) -> None:
        """Copy a part of a buffer into a C-contiguous array of the same size."""

    def free(self, buffer: Any) -> None:
        """Free a buffer."""


@runtime_checkable
class SessionDevice(Protocol):
    """A device that can be opened any number of times, each time with separate memory."""

    def session(self) -> Device:
        """Return the same device with separate, empty memory."""


def own(device: Device) -> Device:
    """Return `device` with memory separate from that of other threads; `device` itself if it cannot be opened again."""
    return device.session() if isinstance(device, SessionDevice) else device


@runtime_checkable
class TensorMapDevice(Protocol):
    """A device with tensor maps, by which kernels copy boxes of tensors."""

    def tensor_map(self, tensor: TiledMap) -> bytes:
        """Return the 128 bytes of a map. Raises `UsageError` or `DeviceError` for one that the driver refuses."""


@runtime_checkable
class TextureDevice(Protocol):
    """A device with one-dimensional textures over linear memory, which kernels read through `tex1Dfetch`."""

    @property
    def most_texels(self) -> int:
        """The most texels of one texture."""

    def linear_texture(self, buffer: Any, channels: int = 4, element: str = "f32") -> int:
        """Return the handle of a texture over a buffer, as `texture.texels_of` describes; it lives as long as the
        buffer.
        """
