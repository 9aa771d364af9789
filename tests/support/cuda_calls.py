"""Call a kernel of a `.cu` file beside a test on any device that runs CUDA code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.counters import Counters
from gemmlab.core.hazard import Hazard
from gemmlab.core.program import Launch, Program

Array = npt.NDArray[Any]
Extent = int | tuple[int, ...]
"""Extents of a grid or block; what is left out is 1."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a launch left behind."""

    outputs: list[Array]
    """Every array argument after the launch, in order."""
    counters: Counters | None
    hazards: tuple[Hazard, ...]


def program_of(path: Path, entry: str, arch: str) -> Program:
    """The kernel `entry` of a file, with the headers that lie beside it."""
    headers = {header.name: header.read_text() for header in path.parent.glob("*.cuh")}
    return Program(
        kernel=entry, language="cuda", target=arch, entry=entry, fingerprint=f"{path.name} {entry}",
        emit=path.read_text, path=str(path), headers=headers,
    )  # fmt: skip


class CudaFile:
    """Kernels of one file on one device; each is built and loaded once."""

    def __init__(self, device: Any, path: Path) -> None:
        self.device = device
        self.path = path
        self._loaded: dict[str, Any] = {}

    def load(self, kernel: str) -> Any:
        """The loaded kernel; `kernel` is a name expression."""
        if kernel not in self._loaded:
            program = program_of(self.path, kernel, self.device.target({}))
            self._loaded[kernel] = self.device.load(self.device.build(program))
        return self._loaded[kernel]

    def run(self, kernel: str, grid: Extent, threads: Extent, args: Sequence[Any], smem_bytes: int = 0) -> Ran:
        """Launch once. Arrays are copied there and back, NumPy scalars passed as they are, `None` for fresh memory.

        A pair (`None`, bytes) is memory that nothing has written.
        """
        loaded = self.load(kernel)
        passed: list[Any] = []
        arrays: list[tuple[Any, Array]] = []
        for argument in args:
            if isinstance(argument, np.generic):
                passed.append(argument)
            elif isinstance(argument, np.ndarray):
                passed.append(self.device.upload(argument))
                arrays.append((passed[-1], np.empty_like(argument)))
            else:
                passed.append(self.device.allocate(argument[1]))
        launch = Launch(tuple(passed), _triple(grid), _triple(threads), smem_bytes)
        try:
            seen = self.device.observe(loaded, launch) if hasattr(self.device, "observe") else None
            if seen is None:
                self.device.launch(loaded, launch)
            for buffer, out in arrays:
                self.device.download(buffer, out)
        finally:
            for argument in passed:
                if not isinstance(argument, np.generic):
                    self.device.free(argument)
        outputs = [out for _, out in arrays]
        return Ran(outputs, seen.counters if seen else None, seen.hazards if seen else ())


def _triple(extent: Extent) -> tuple[int, int, int]:
    x, y, z = (*(extent if isinstance(extent, tuple) else (extent,)), 1, 1)[:3]
    return x, y, z
