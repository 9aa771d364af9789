"""The processor as a device whose code carries a probe: the same kernels, observed while they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.codegen import runtime as shared
from gemmlab.core.errors import UsageError
from gemmlab.core.program import Artifact, Program
from gemmlab.devices.cpu import CpuBuffer, CpuDevice, CpuLoaded
from gemmlab.ir.build import build
from gemmlab.ir.compile import load_object
from gemmlab.ir.module import Probe
from gemmlab.ir.probe import STATE
from gemmlab.ir.target import host_target

_BOUNDARY = 2 << 20


class ProbedCpu(CpuDevice):
    """A device that runs kernels with `probe` in them, on one thread; the caller clears and reads its memory `state`.

    Its allocations start on a 2 MiB boundary, so that results that depend on addresses are the same in every run.
    """

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.state: npt.NDArray[np.int64] = np.zeros(probe.words, np.int64)

    def target(self, config: Mapping[str, int]) -> str:
        """Return the processor's target with the probe's name after it."""
        return f"{super().target(config)}:{self.probe.name}"

    def build(self, program: Program) -> Artifact:
        """Compile, or fetch from the cache. Raises `CompileError`, `UsageError` for code without the probe."""
        lanes = int(program.target.split(":")[1])
        target = host_target(lanes)
        if program.target != f"{target.name}:{self.probe.name}":
            raise UsageError(f"{program.kernel} is for {program.target}, not for {target.name}:{self.probe.name}")
        return build(program, target)

    def load(self, artifact: Artifact) -> CpuLoaded:
        """Link an artifact to this device's state."""
        imports = {shared.SYMBOL: shared.runtime().address, STATE: self.state.ctypes.data}
        linked = load_object(artifact.code, (artifact.entry, *artifact.exports), imports)
        # Linked code is never unloaded, and the pool may run it at any time; so its counters must live as long.
        _live_states.append(self.state)
        return CpuLoaded(artifact, linked.addresses)

    def allocate(self, nbytes: int) -> CpuBuffer:
        """Return zeroed memory that starts on a 2 MiB boundary; `MemoryError` if there is too little."""
        raw = np.zeros(nbytes + _BOUNDARY, np.uint8)
        start = -raw.ctypes.data % _BOUNDARY
        return CpuBuffer(raw[start : start + nbytes])


_live_states: list[Any] = []
