"""This machine's processor as a device: LLVM code, memory shared with NumPy, threads in compiled code."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.codegen import runtime as shared
from gemmlab.codegen.peak import peak_burst, tile_burst
from gemmlab.codegen.read_rate import read_burst
from gemmlab.core.errors import CompileError, DeviceError, UsageError
from gemmlab.core.hardware import cpu_info, physical_cores
from gemmlab.core.program import Artifact, Launch, Program
from gemmlab.core.time_limit import require_time
from gemmlab.devices.device import DeviceInfo
from gemmlab.devices.device_name import CPU, DeviceIdentity
from gemmlab.ir.build import build
from gemmlab.ir.compile import load_object
from gemmlab.ir.target import Target, host_target

NO_WORKSPACE = 1
WORKER_SYMBOLS = ("gemmlab_pool_init", "gemmlab_worker")


@dataclass(frozen=True, slots=True)
class CpuBuffer:
    """Memory that the NumPy array `array` owns and keeps alive."""

    array: npt.NDArray[Any]

    @property
    def address(self) -> int:
        return int(self.array.ctypes.data)

    @property
    def nbytes(self) -> int:
        return int(self.array.nbytes)


@dataclass(frozen=True, slots=True)
class CpuLoaded:
    """Code linked into this process; `addresses` has the address of its entry and of every symbol that it exports."""

    artifact: Artifact
    addresses: Mapping[str, int]


class CpuDevice(DeviceIdentity):
    """A device that compiles for this machine's processor and runs on it."""

    device_name = CPU

    def describe(self) -> DeviceInfo:
        """Return the processor's facts, as `gemmlab doctor` shows them."""
        info = cpu_info()
        return DeviceInfo("cpu", info.name, info.to_json())

    def target(self, config: Mapping[str, int]) -> str:
        """Return the name of the compilation target. `LANES` in the configuration is the vector width in float32.

        Without it, or with 0, the vectors are the widest. Raises `DeviceError` for a width that the processor lacks.
        """
        return host_target(config.get("LANES") or None).name

    def build(self, program: Program) -> Artifact:
        """Compile a program, or fetch its code from the cache.

        Raises `CompileError`, `DeviceError` for a target that is not this processor, `UsageError` for another language
        than LLVM.
        """
        if program.language != "llvm":
            raise UsageError(f"{program.kernel} is written in {program.language}; the cpu device runs llvm code")
        return build(program, _native(program.kernel, program.target))

    def load(self, artifact: Artifact) -> CpuLoaded:
        """Link an artifact into this process, once for each distinct code; it is never unloaded.

        Raises `DeviceError` for a target that is not this processor, `UsageError` for code that is no object code,
        `CompileError` if it is damaged or lacks a symbol.
        """
        if artifact.kind != "object":
            raise UsageError(f"{artifact.kernel}: the cpu device loads object code, not a {artifact.kind}")
        _native(artifact.kernel, artifact.target)
        return _load(_Code(artifact))

    def allocate(self, nbytes: int) -> CpuBuffer:
        """Return uninitialised memory aligned to 64 bytes; `MemoryError` if the system has too little."""
        raw = np.empty(nbytes + 64, np.uint8)
        start = -raw.ctypes.data % 64
        return CpuBuffer(raw[start : start + nbytes])

    def upload(self, array: npt.NDArray[Any]) -> CpuBuffer:
        """Return the array's own memory: kernels work on it in place. `UsageError` unless it is C-contiguous."""
        if not array.flags.c_contiguous:
            raise UsageError("only contiguous arrays can be used in place on a device")
        return CpuBuffer(array)

    def free(self, buffer: CpuBuffer) -> None:
        """Do nothing: memory is freed with the array that owns it."""

    def download(self, buffer: CpuBuffer, out: npt.NDArray[Any]) -> None:
        """Copy a buffer into `out`, which has its size. Do nothing if `out` is the same memory."""
        if buffer.address != out.ctypes.data:
            np.copyto(out, buffer.array.view(out.dtype).reshape(out.shape))

    def launch(self, loaded: CpuLoaded, launch: Launch) -> None:
        """Run once and wait for the end. If every workspace is in use, add one; if no more can be added, wait for one.

        Raises `TimeLimitError` if the time limit has passed before the run; compiled code is not interrupted.
        """
        require_time(loaded.artifact.kernel)
        call, args = self._prepare(loaded, launch)
        while call(*args) == NO_WORKSPACE:
            _more_room()

    def time(self, loaded: CpuLoaded, launch: Launch, repeats: int, inner: int = 1) -> list[float]:
        """Return `repeats` times of one run in microseconds, each the mean over `inner` runs timed separately.

        Raises `MemoryError` if every workspace is in use by other threads.
        """
        call, args = self._prepare(loaded, launch)
        clock = time.perf_counter_ns
        samples: list[float] = []
        for _ in range(repeats * inner):
            start = clock()
            status = call(*args)
            samples.append((clock() - start) / 1e3)
            if status == NO_WORKSPACE:
                raise MemoryError("every workspace is in use by other threads")
        return [sum(samples[first : first + inner]) / inner for first in range(0, len(samples), inner)]

    def _prepare(self, loaded: CpuLoaded, launch: Launch) -> tuple[Any, tuple[Any, ...]]:
        if launch.threads[0] > 1 or WORKER_SYMBOLS[0] in loaded.addresses:
            start_workers(loaded, launch.threads[0])
        values = [_c_value(argument) for argument in launch.args]
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *(type(value) for value in values))
        return prototype(loaded.addresses[loaded.artifact.entry]), tuple(values)

    def measure_peak(self, threads: int = 1, seconds: float = 0.2) -> float:
        """Measure float32 GFLOP/s of pure fused multiply-adds on the widest vectors, added up over `threads` threads.

        Every thread runs short bursts for `seconds`, all at the same time; its rate is the median of its bursts.
        Threads are Python's and run compiled code without its lock. Pin the process to measure particular cores.
        """
        return _together(lambda _index: peak_burst(), threads, seconds)

    def measure_read(self, threads: int = 1, seconds: float = 0.2) -> float:
        """Measure the 10^9 bytes a second at which `threads` threads together read memory far larger than the caches.

        Each thread reads its own memory, in bursts for `seconds`; the median rates of the threads are added up.
        """
        return _together(read_burst, threads, seconds)

    def measure_tile(self, seconds: float = 0.2) -> tuple[float, float]:
        """Measure float32 GFLOP/s of the matrix product's register tile on one thread, and its share of the FMA peak.

        Bursts of the tile alternate with bursts of pure FMAs for `seconds`. The share, a number near 1 or below, is the
        median ratio of a burst of the tile to the mean of the two bursts beside it.
        """
        peak, tile = peak_burst(), tile_burst()
        peak(), tile()
        deadline = time.perf_counter() + seconds
        rates: list[float] = []
        shares: list[float] = []
        while not rates or time.perf_counter() < deadline:
            before, rate, after = peak(), tile(), peak()
            rates.append(rate)
            shares.append(2 * rate / (before + after))
        return float(np.median(rates)), float(np.median(shares))


def _together(bursts: Callable[[int], Callable[[], float]], threads: int, seconds: float) -> float:
    """Run bursts on all threads at once for `seconds`; return the sum of the threads' median rates.

    `bursts(index)` returns the burst of a thread, a function that returns its rate.
    """
    barrier = threading.Barrier(threads)
    rates: list[float] = [0.0] * threads

    def run(index: int) -> None:
        burst = bursts(index)
        burst()
        barrier.wait()
        deadline = time.perf_counter() + seconds
        samples: list[float] = []
        while not samples or time.perf_counter() < deadline:
            samples.append(burst())
        rates[index] = float(np.median(samples))

    workers = [threading.Thread(target=run, args=(index,)) for index in range(1, threads)]
    for worker in workers:
        worker.start()
    run(0)
    for worker in workers:
        worker.join()
    return sum(rates)


@dataclass(frozen=True, slots=True)
class _Code:
    """An artifact as a key in the cache of linked code: two are equal if their digests are."""

    artifact: Artifact

    def __hash__(self) -> int:
        return hash(self.artifact.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Code) and other.artifact.digest == self.artifact.digest


@cache
def _load(code: _Code) -> CpuLoaded:
    artifact = code.artifact
    symbols = (artifact.entry, *artifact.exports)
    linked = load_object(artifact.code, symbols, {shared.SYMBOL: shared.runtime().address})
    return CpuLoaded(artifact, linked.addresses)


def _native(kernel: str, target: str) -> Target:
    """Return the target named `target`; `DeviceError` unless it is this processor's. `kernel` is for the message."""
    _arch, lanes, *_rest = target.split(":")
    here = host_target(int(lanes))
    if here.name != target:
        raise DeviceError(f"{kernel} is for {target}; this processor is {here.name}")
    return here


def start_workers(loaded: CpuLoaded, threads: int) -> None:
    """Start the process's pool of workers, with code that `loaded` exports, for calls on `threads` threads.

    A pool that runs is only extended. Raises `UsageError` if the code exports no pool, `CompileError` if the pool's
    workspaces are too small for it.
    """
    runtime = shared.runtime()
    if WORKER_SYMBOLS[0] not in loaded.addresses:
        raise UsageError(f"{loaded.artifact.kernel} runs on one thread, not {threads}")
    pool_init, worker = (loaded.addresses[symbol] for symbol in WORKER_SYMBOLS)
    needed = loaded.artifact.resources.get("workspace_bytes", 0)
    runtime.start(pool_init, worker, needed, physical_cores)
    if runtime.workspace_bytes < needed:
        raise CompileError(f"{loaded.artifact.kernel} needs {needed} bytes of workspace a thread")
    runtime.ensure_workers(threads - 1)


def _more_room() -> None:
    if not shared.runtime().add_slot():
        time.sleep(0.001)


def _c_value(argument: Any) -> Any:
    if isinstance(argument, np.float32):
        return ctypes.c_float(float(argument))
    if isinstance(argument, np.integer):
        return ctypes.c_int64(int(argument))
    return ctypes.c_void_p(argument.address)
