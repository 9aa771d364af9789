"""The processor as a device that compiles a probe into kernels, to observe them while they run."""

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
    """A device that runs kernels with `probe` compiled into them, on one thread.

    The probe writes to `state`, which the caller clears and reads. Allocations start on a 2 MiB boundary, so that
    results that depend on addresses are the same in every run.
    """

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.state: npt.NDArray[np.int64] = np.zeros(probe.words, np.int64)

    def target(self, config: Mapping[str, int]) -> str:
        """Return the name of the processor's target and, after a colon, that of the probe."""
        return f"{super().target(config)}:{self.probe.name}"

    def build(self, program: Program) -> Artifact:
        """Compile a program, or fetch its code from the cache.

        Raises `CompileError`, `UsageError` for a program whose target is not this processor with this probe.
        """
        lanes = int(program.target.split(":")[1])
        target = host_target(lanes)
        if program.target != f"{target.name}:{self.probe.name}":
            raise UsageError(f"{program.kernel} is for {program.target}, not for {target.name}:{self.probe.name}")
        return build(program, target)

    def load(self, artifact: Artifact) -> CpuLoaded:
        """Link an artifact into this process so that its probe writes to this device's `state`."""
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
