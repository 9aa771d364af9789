"""An NVIDIA GPU as a device: cubins, its own memory, one stream, times by events."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.arrays.on_gpu import DeviceArray, device_array
from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.program import Artifact, Launch, Program
from gemmlab.core.tensor_map import TiledMap
from gemmlab.core.time_limit import current_limit
from gemmlab.devices.cuda_code import (
    CudaLoaded,
    WordsLaunch,
    allow_clusters,
    allow_smem,
    argument_bytes,
    check_launch,
    launch_config,
    load_code,
    runs_on,
)
from gemmlab.devices.cuda_driver import KernelFaultError, finished_in, open_driver
from gemmlab.devices.cuda_facts import Nvml, device_facts, open_nvml
from gemmlab.devices.cuda_memory import CudaBuffer, CudaMemory, ordinal_of
from gemmlab.devices.cuda_peaks import Peaks
from gemmlab.devices.cuda_tensor_map import encode
from gemmlab.devices.cuda_texture import create_texture
from gemmlab.devices.cuda_timing import EventTimer, Mode
from gemmlab.devices.device import Buffer, Clocks, DeviceInfo, Window
from gemmlab.devices.device_name import DeviceIdentity, DeviceName
from gemmlab.devices.texture import owner_of, texels_of
from gemmlab.toolchain.build_cuda import for_gpu


class CudaDevice(DeviceIdentity):
    """A device that loads onto and runs on one GPU, in the context that torch, CuPy and the CUDA runtime use too.

    `mode` is the state of the caches for `time` (`cuda_timing`). Work goes to a stream of its own, `stream`.
    Raises `DeviceError` where there is no such GPU, no driver or no binding, and says what is missing.
    """

    def __init__(self, ordinal: int = 0, mode: Mode = "cold") -> None:
        self._driver = driver = open_driver()
        count = int(driver("cuDeviceGetCount"))
        if not 0 <= ordinal < count:
            names = ", ".join(f"cuda:{index}" for index in range(count)) or "none"
            raise DeviceError(f"no device cuda:{ordinal}; GPUs here: {names}")
        self.device_name, self.ordinal = DeviceName("cuda", str(ordinal)), ordinal
        self.mode = mode
        self._device = driver("cuDeviceGet", ordinal)
        self._context = driver("cuDevicePrimaryCtxRetain", self._device)
        self._current = driver.module.cuCtxGetCurrent
        self._lost = ""
        self._enter()
        self.stream = driver("cuStreamCreate", int(driver.module.CUstream_flags.CU_STREAM_NON_BLOCKING))
        self.memory = CudaMemory(driver, self._context, self.stream)
        self._loaded: weakref.WeakValueDictionary[tuple[str, str], CudaLoaded] = weakref.WeakValueDictionary()
        self._built: dict[tuple[str, str, str], Artifact] = {}

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Facts that the driver gives about the GPU (`cuda_facts.device_facts`)."""
        self._enter()
        return device_facts(self._driver, self._device)

    @cached_property
    def name(self) -> str:
        """The name of the model, `"NVIDIA H200"`."""
        name = self._driver("cuDeviceGetName", 256, self._device)
        return name.split(b"\0", 1)[0].decode("utf-8", "replace") if isinstance(name, bytes) else str(name)

    def describe(self) -> DeviceInfo:
        """Return name, limits, versions and clocks; `measure_peaks` gives the rates it reaches."""
        clocks = self.clocks()
        moment = {"clocks": clocks and {"sm_mhz": clocks.sm_mhz, "memory_mhz": clocks.memory_mhz}}
        return DeviceInfo(
            self.id, self.name, {**self.facts, "driver": self._nvml and self._nvml.driver_version(), **moment}
        )

    def target(self, config: Mapping[str, int]) -> str:  # noqa: ARG002 - one target a GPU
        """Return `"sm_90"`; a kernel that needs features of this architecture alone asks for `"sm_90a"` itself."""
        return f"sm_{self.facts['compute_capability'].replace('.', '')}"

    def build(self, program: Program) -> Artifact:
        """Return the code of the package or the cache, or compile. Raises `CompileError`, `DeviceError` for code of
        another GPU.
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
        """Load a cubin into GPU memory, once for each distinct code. Raises `DeviceError`, `UsageError`."""
        if artifact.kind != "cubin":
            raise UsageError(f"{artifact.kernel}: the cuda device loads cubins, not a {artifact.kind}")
        self._require_target(artifact.kernel, artifact.target)
        key = artifact.digest, artifact.entry
        found = self._loaded.get(key)
        if found is None:
            self._enter()
            found = self._loaded[key] = load_code(self._driver, self._context, artifact)
        return found

    def allocate(self, nbytes: int) -> CudaBuffer:
        """Return uninitialised memory on a 256-byte boundary; `MemoryError` when there is none."""
        self._enter()
        return self.memory.allocate(nbytes)

    def allocate_sparse(self, nbytes: int) -> CudaBuffer:
        """Return memory full of NaN; `MemoryError` where the GPU has not so much free."""
        self._enter()
        return self.memory.allocate_sparse(nbytes)

    def write(self, window: Window, array: npt.NDArray[Any]) -> None:
        """Copy a C-contiguous array into a part of a buffer of this size."""
        self._enter()
        self.memory.write(window, array)

    def read(self, window: Window, out: npt.NDArray[Any]) -> None:
        """Copy a part of a buffer into a C-contiguous array of this size."""
        self.download(window, out)

    def upload(self, array: Any) -> CudaBuffer:
        """Return a copy of a C-contiguous NumPy array, or of an array of another package on this GPU."""
        self._enter()
        if isinstance(array, np.ndarray):
            return self.memory.upload(array)
        return self.memory.duplicate(self._mine(array))

    def borrow(self, array: Any) -> CudaBuffer:
        """Return the memory of an array of another package on this GPU, to work on in place."""
        self._enter()
        return self.memory.borrow(self._mine(array))

    def free(self, buffer: CudaBuffer) -> None:
        """Free memory now rather than with its last user; borrowed memory stays its owner's."""
        buffer.drop_textures()
        buffer.release()

    @property
    def most_texels(self) -> int:
        """The most texels of one texture over linear memory."""
        return int(self.facts["texture_1d_linear"])

    def linear_texture(self, buffer: Buffer, channels: int = 4, element: str = "f32") -> int:
        """Return the handle of a texture over a buffer; it lives as long as the buffer."""
        texels, owner = texels_of(buffer, channels, element, self.most_texels), owner_of(buffer)
        if texels not in owner.textures:
            self._enter()
            owner.textures[texels] = create_texture(self._driver, self._context, texels)
        return int(owner.textures[texels])

    def tensor_map(self, tensor: TiledMap) -> bytes:
        """Return the driver's 128 bytes of a tensor map."""
        self._enter()
        return encode(self._driver, tensor)

    def download(self, buffer: Any, out: npt.NDArray[Any]) -> None:
        """Copy a buffer into a C-contiguous array of the same size."""
        self._enter()
        self.memory.download(buffer, out)

    def launch(self, loaded: CudaLoaded, launch: Launch) -> None:
        """Run once and wait for the end. `KernelFaultError` when the kernel faulted, `UsageError` for a wrong launch.

        `TimeLimitError` when the time limit (`core.time_limit`) passes. Only the end of the process ends a kernel that
        runs on a GPU: every later use of the device is refused.
        """
        enqueue = self.prepare(loaded, launch)
        limit = current_limit()
        with self._blaming(loaded.artifact.kernel):
            enqueue()
            if limit is None:
                self._driver("cuStreamSynchronize", self.stream)
            elif not finished_in(self._driver, self.stream, limit):
                self._lost = f"{loaded.artifact.kernel} still runs past its time limit on {self.id}"
                self._driver.occupied.append(self._context)
                blocks = math.prod(launch.grid)
                raise limit.error(
                    loaded.artifact.kernel, f"{self.id} does not tell how many of {blocks:,} blocks have finished",
                    blocks=blocks,
                )  # fmt: skip

    def time(self, loaded: CudaLoaded, launch: Launch, repeats: int, inner: int = 1) -> list[float]:
        """Return `repeats` times of one run in microseconds by events, each the mean over `inner` runs in a row."""
        return self.time_launches(loaded, [launch], repeats, inner)

    def time_launches(
        self, loaded: CudaLoaded, launches: Sequence[Launch], repeats: int, inner: int = 1
    ) -> list[float]:
        """Do as `time` for several launches, queued on the stream one after the other."""
        prepared = [self.prepare(loaded, launch) for launch in launches]

        def enqueue() -> None:
            for one in prepared:
                one()

        call = prepared[0] if len(prepared) == 1 else enqueue
        return self.time_enqueued(call, repeats, inner, loaded.artifact.kernel)

    def time_enqueued(
        self, enqueue: Callable[[], object], repeats: int, inner: int = 1, what: str = "a call"
    ) -> list[float]:
        """Do as `time` for any function that queues work on `stream`, such as another library's call."""
        self._enter()
        with self._blaming(what):
            return self._timer.time(enqueue, repeats, inner)

    def prepare(self, loaded: CudaLoaded, launch: Launch) -> Callable[[], None]:
        """Return a function that queues the launch, with its arguments already laid out."""
        self._enter()
        kernel = loaded.artifact.kernel
        values = [argument_bytes(kernel, argument) for argument in launch.args]
        sizes = tuple(value.nbytes for value in values)
        check_launch(loaded, launch, sizes, self.name, int(self.facts["smem_per_block"]))
        allow_smem(self._driver, loaded, launch.smem_bytes)
        allow_clusters(self._driver, loaded, launch)
        pointers = np.array([value.ctypes.data for value in values], np.uint64)
        if launch.cluster is not None or launch.early or launch.cooperative:
            return self._prepare_described(loaded, launch, pointers, (values, launch.args))
        call, driver, where = self._driver.module.cuLaunchKernel, self._driver, pointers.ctypes.data
        extents = (*launch.grid, *launch.threads, launch.smem_bytes)

        def enqueue(_keep: Any = (values, launch.args, pointers)) -> None:
            (status,) = call(loaded.function, *extents, self.stream, where, 0)
            if status:
                raise driver.error(status, "cuLaunchKernel", kernel)

        return enqueue

    def _prepare_described(
        self, loaded: CudaLoaded, launch: Launch, pointers: npt.NDArray[np.uint64], alive: Any
    ) -> Callable[[], None]:
        config = launch_config(self._driver, launch, self.stream)

        def enqueue(_keep: Any = (alive, pointers)) -> None:
            what = loaded.artifact.kernel
            self._driver("cuLaunchKernelEx", config, loaded.function, pointers.ctypes.data, 0, what=what)

        return enqueue

    def words_launch(self, loaded: CudaLoaded, launch: Launch) -> WordsLaunch:
        """Return a launch for which another stream and other arguments of the same sizes can be given each time."""
        self._enter()
        sizes = tuple(argument_bytes(loaded.artifact.kernel, argument).nbytes for argument in launch.args)
        check_launch(loaded, launch, sizes, self.name, int(self.facts["smem_per_block"]))
        allow_smem(self._driver, loaded, launch.smem_bytes)
        return WordsLaunch(self._driver, loaded, launch)

    def activate(self) -> None:
        """Make the GPU's context current in this thread, for a library that uses the current context."""
        self._enter()

    @property
    def is_current(self) -> bool:
        """True if its context is current in this thread, and no kernel has broken it."""
        # An error instead of a current context means that this context is not current.
        return bool(self._current()[1] == self._context) and not self._lost

    def clocks(self) -> Clocks | None:
        """Return the present clocks and the reasons that limit them; `None` without nvidia-ml-py."""
        return self._nvml.clocks() if self._nvml else None

    def measure_peak(self, threads: int = 1, seconds: float = 0.2) -> float:  # noqa: ARG002 - of the host, which waits
        """Measure float32 GFLOP/s of pure fused multiply-adds on every SM. Raises as `build` does."""
        self._enter()
        return self._peaks.fma_gflops(seconds)

    def measure_read(self, threads: int = 1, seconds: float = 0.2) -> float:  # noqa: ARG002 - of the host, which waits
        """Measure GB/s of reading memory far larger than the level-2 cache. Raises as `build` does."""
        self._enter()
        return self._peaks.read_gbs(seconds)

    def measure_peaks(self) -> dict[str, float]:
        """Measure `fma_gflops`, `copy_gbs` (read and written), from sm_80 `mma_tf32_gflops`. Raises as `build` does."""
        self._enter()
        peaks = self._peaks
        found = {
            "fma_gflops": peaks.fma_gflops(0.2),
            "mma_tf32_gflops": peaks.mma_tf32_gflops(),
            "copy_gbs": peaks.copy_gbs(),
        }
        return {name: value for name, value in found.items() if value is not None}

    @cached_property
    def _timer(self) -> EventTimer:
        return EventTimer(self._driver, self.memory, self.stream, int(self.facts["l2_bytes"]), self.mode)

    @cached_property
    def _nvml(self) -> Nvml | None:
        return open_nvml(self._driver, self._device)

    @cached_property
    def _peaks(self) -> Peaks:
        return Peaks(self, self.facts)

    def _enter(self) -> None:
        if self._lost:
            raise DeviceError(f"{self._lost}; start the process again")
        self._driver("cuCtxSetCurrent", self._context)

    @contextmanager
    def _blaming(self, what: str) -> Iterator[None]:
        """Attribute a fault within the block to `what`, and refuse every later use of the device."""
        try:
            yield
        except KernelFaultError as error:
            self._lost = f"the GPU context was lost when {what} broke"
            raise KernelFaultError(f"{what}: {error}") from error

    def _mine(self, array: Any) -> DeviceArray:
        """Return another package's array, if it lies on this GPU; `DeviceError` otherwise."""
        found = device_array(array)
        where = ordinal_of(self._driver, found)
        if where not in (None, self.ordinal):
            raise DeviceError(f"the array lies on cuda:{where}, not on {self.id}")
        return found

    def _require_target(self, kernel: str, target: str) -> None:
        if not runs_on(target, self.facts["compute_capability"]):
            raise DeviceError(f"{kernel} is for {target}; {self.name} runs code for {self.target({})}")
