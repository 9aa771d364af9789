"""The protocol every device implements: where kernels run. One file in this folder is one device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gemmlab.core.program import Artifact, Launch, Program

Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What a device says of itself; everything JSON-able so that records can keep it."""

    id: str
    """`"cpu"`, `"cuda:0"`, `"emulated:sm_90"`."""
    name: str
    facts: Mapping[str, Any] = field(default_factory=dict)


class Buffer(Protocol):
    """Memory on a device. `nbytes` long; `address` is what a kernel receives."""

    @property
    def address(self) -> int: ...

    @property
    def nbytes(self) -> int: ...


class Loaded(Protocol):
    """An artifact made callable on one device."""

    @property
    def artifact(self) -> Artifact: ...


class Device(Protocol):
    """Compile, hold memory, run and time. Knows nothing of kernels, operations or problems.

    A device takes back only its own buffers and loaded code, which is why those parameters are `Any` here.
    """

    @property
    def id(self) -> str: ...

    def describe(self) -> DeviceInfo:
        """Name, limits and peaks."""

    def target(self, config: Mapping[str, int]) -> str:
        """The compilation target for a configuration (a `LANES` parameter picks the CPU vector width)."""

    def build(self, program: Program) -> Artifact:
        """Compile, or fetch from the cache. Raises `CompileError`."""

    def load(self, artifact: Artifact) -> Any:
        """Make an artifact callable: a `Loaded`."""

    def allocate(self, nbytes: int) -> Buffer:
        """Uninitialised memory; `MemoryError` when there is none."""

    def upload(self, array: npt.NDArray[Any]) -> Buffer:
        """A buffer holding a copy of (on a CPU: a view of) a C-contiguous array."""

    def download(self, buffer: Any, out: npt.NDArray[Any]) -> None:
        """Copy a buffer into a C-contiguous array of the same size."""

    def launch(self, loaded: Any, launch: Launch) -> None:
        """Run once and wait for the end."""

    def time(self, loaded: Any, launch: Launch, repeats: int) -> list[float]:
        """Run `repeats` times, each timed apart, in microseconds."""
