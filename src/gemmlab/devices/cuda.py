"""An NVIDIA GPU as a device: cubins, its own memory, one stream, times by events."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from functools import cached_property

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.program import Artifact, Program
from gemmlab.devices.cuda_code import (
    CudaLoaded,
    load_code,
    runs_on,
)
from gemmlab.devices.cuda_facts import Nvml, open_nvml
from gemmlab.devices.cuda_launches import CudaLaunches
from gemmlab.devices.cuda_peaks import Peaks
from gemmlab.devices.cuda_timing import Mode
from gemmlab.devices.device import Clocks, DeviceInfo
from gemmlab.toolchain.build_cuda import for_gpu


class CudaDevice(CudaLaunches):
    """A device that runs kernels on GPU number `ordinal`, in the context that torch, CuPy and the CUDA runtime use too.

    `mode` is the state of the caches for `time` (`cuda_timing`). Work is queued on the device's own `stream`. The
    constructor raises `DeviceError` if there is no such GPU, and as `open_driver` does.
    """

    def __init__(self, ordinal: int = 0, mode: Mode = "cold") -> None:
        super().__init__(ordinal, mode)
        self._loaded: weakref.WeakValueDictionary[tuple[str, str], CudaLoaded] = weakref.WeakValueDictionary()
        self._built: dict[tuple[str, str, str], Artifact] = {}

    def describe(self) -> DeviceInfo:
        """Return name, limits, versions and current clocks. Peak rates are not among them (see `measure_peaks`)."""
        clocks = self.clocks()
        moment = {"clocks": clocks and {"sm_mhz": clocks.sm_mhz, "memory_mhz": clocks.memory_mhz}}
        return DeviceInfo(
            self.id, self.name, {**self.facts, "driver": self._nvml and self._nvml.driver_version(), **moment}
        )

    def target(self, config: Mapping[str, int]) -> str:  # noqa: ARG002 - one target a GPU
        """Return the GPU's architecture, such as `"sm_90"`, for every configuration.

        A kernel that needs features of this architecture alone uses `"sm_90a"` instead.
        """
        return f"sm_{self.facts['compute_capability'].replace('.', '')}"

    def build(self, program: Program) -> Artifact:
        """Return a program's machine code from gemmlab's package or the cache, or compile it.

        Raises `CompileError`, `DeviceError` for a target that this GPU cannot run, `UsageError` for another language
        than CUDA C++.
        """
        if program.language != "cuda":
            raise UsageError(f"{program.kernel} is written in {program.language}; the cuda device runs cuda code")
        self._require_target(program.kernel, program.target)
        if not program.fingerprint:
            return for_gpu(program)
        key = program.target, program.entry, program.fingerprint
        if key not in self._built:
            self._built[key] = for_gpu(program)
        return self._built[key]

    def load(self, artifact: Artifact) -> CudaLoaded:
        """Load a cubin into GPU memory, once for each distinct code. It is unloaded when nothing refers to the result.

        Raises `DeviceError` for code that the GPU cannot run or the driver refuses, `UsageError` if it is no cubin.
        """
        if artifact.kind != "cubin":
            raise UsageError(f"{artifact.kernel}: the cuda device loads cubins, not a {artifact.kind}")
        self._require_target(artifact.kernel, artifact.target)
        key = artifact.digest, artifact.entry
        found = self._loaded.get(key)
        if found is None:
            self._enter()
            found = self._loaded[key] = load_code(self._driver, self._context, artifact)
        return found

    def clocks(self) -> Clocks | None:
        """Return the current clocks and the reasons that limit them; `None` if NVML does not give them."""
        return self._nvml.clocks() if self._nvml else None

    def measure_peak(self, threads: int = 1, seconds: float = 0.2) -> float:  # noqa: ARG002 - of the host, which waits
        """Measure float32 GFLOP/s of pure fused multiply-adds on all SMs together. Raises as `build` does."""
        self._enter()
        return self._peaks.fma_gflops(seconds)

    def measure_read(self, threads: int = 1, seconds: float = 0.2) -> float:  # noqa: ARG002 - of the host, which waits
        """Measure GB/s of reading memory far larger than the level-2 cache. Raises as `build` does."""
        self._enter()
        return self._peaks.read_gbs(seconds)

    def measure_peaks(self) -> dict[str, float]:
        """Measure `fma_gflops`, `copy_gbs` (read and written bytes together), and from sm_80 on `mma_tf32_gflops`.

        Raises as `build` does.
        """
        self._enter()
        peaks = self._peaks
        found = {
            "fma_gflops": peaks.fma_gflops(0.2),
            "mma_tf32_gflops": peaks.mma_tf32_gflops(),
            "copy_gbs": peaks.copy_gbs(),
        }
        return {name: value for name, value in found.items() if value is not None}

    @cached_property
    def _nvml(self) -> Nvml | None:
        return open_nvml(self._driver, self._device)

    @cached_property
    def _peaks(self) -> Peaks:
        return Peaks(self, self.facts)

    def _require_target(self, kernel: str, target: str) -> None:
        if not runs_on(target, self.facts["compute_capability"]):
            raise DeviceError(f"{kernel} is for {target}; {self.name} runs code for {self.target({})}")
