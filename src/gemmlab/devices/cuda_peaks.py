"""Measure the highest rates of a GPU: float32 fused multiply-adds, TF32 products, and bytes through memory."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gemmlab.core.gpu import WARP
from gemmlab.core.program import Launch, Program
from gemmlab.devices.cuda_memory import CudaMemory
from gemmlab.devices.device import Device

SOURCE = Path(__file__).with_suffix(".cu")
FMAS_A_ROUND = 8 * 16
"""FMAs of a thread in one round of `ffma_peak`'s loop: UNROLL times CHAINS in the CUDA source."""
MMAS_A_ROUND = 8 * 16
"""Matrix instructions of a warp in one round of `mma_tf32_peak`'s loop: UNROLL times TILES in the CUDA source. Each has
2 * 16 * 8 * 8 operations.
"""
_MMA_SINCE = 8.0
_THREADS = 256
_COPY_BYTES = 1 << 30
_BURST_US = 1000.0
_READ_BYTES = 1 << 30
_READ_THREADS = 512
_READ_WAVES = (2, 4, 8, 16)
"""Numbers of blocks for each SM with which reading is tried: two run at a time, and more blocks balance the SMs."""


def program(entry: str, target: str) -> Program:
    """Return the program for an entry: `"ffma_peak"`, `"mma_tf32_peak"`, `"copy_peak"` or `"read_peak"`."""
    text = SOURCE.read_text(encoding="utf-8")
    return Program(
        kernel=entry,
        language="cuda",
        target=target,
        entry=entry,
        fingerprint=hashlib.sha256(text.encode()).hexdigest(),
        emit=lambda: text,
        path=SOURCE.name,
    )


class Gpu(Device, Protocol):
    """A device that is a GPU. Its `memory` says how many bytes are free (`CudaMemory.room`)."""

    @property
    def memory(self) -> CudaMemory: ...


class Peaks:
    """Measurements of one device with these `facts` (`cuda_facts.device_facts`). Code is built and loaded once."""

    def __init__(self, device: Gpu, facts: Mapping[str, Any]) -> None:
        self._device = device
        self._facts = facts
        self._rounds = 512
        self._blocks = int(facts["sms"]) * int(facts["threads_per_sm"]) // _THREADS
        self._out = device.allocate(4 * self._blocks * _THREADS)
        self._loaded: dict[str, Any] = {}
        self._readable: Any = None

    def fma_gflops(self, seconds: float) -> float:
        """Return the GFLOP/s of FMAs (2 FLOP each): the median of bursts of about a millisecond for `seconds`.

        Every SM is full of warps.
        """
        work = 2.0 * FMAS_A_ROUND * self._blocks * _THREADS
        first = min(self._ffma(3))
        self._rounds = max(1, round(self._rounds * _BURST_US / max(first, 1.0)))
        return work * self._rounds / (statistics.median(self._repeat(seconds)) * 1e3)

    def mma_tf32_gflops(self) -> float | None:
        """Return the median GFLOP/s of `mma.sync` on TF32 inputs in registers; `None` before compute capability 8.0."""
        if float(self._facts["compute_capability"]) < _MMA_SINCE:
            return None
        loaded, rounds = self._load("mma_tf32_peak"), 1 << 9
        launch = Launch((self._out, np.int32(rounds)), (2 * int(self._facts["sms"]), 1, 1), (_THREADS, 1, 1))
        warps = 2 * int(self._facts["sms"]) * _THREADS // WARP
        work = 2.0 * 16 * 8 * 8 * MMAS_A_ROUND * rounds * warps
        return work / (statistics.median(self._device.time(loaded, launch, 20)) * 1e3)

    def copy_gbs(self, repeats: int = 20) -> float:
        """Return the 10^9 bytes a second, read and written bytes together, of a copy of a GiB: the median of `repeats`.

        The copy is smaller if less than 4 GiB of memory are free.
        """
        device = self._device
        free, _ = device.memory.room()
        nbytes = min(_COPY_BYTES, free // 4) // 16 * 16
        to, source = device.allocate(nbytes), device.allocate(nbytes)
        launch = Launch((to, source, np.int64(nbytes // 16)), (self._blocks, 1, 1), (_THREADS, 1, 1))
        times = device.time(self._load("copy_peak"), launch, repeats)
        return 2 * nbytes / (statistics.median(times) * 1e3)

    def read_gbs(self, seconds: float) -> float:
        """Return the 10^9 bytes a second of reading a GiB, or less if less than 4 GiB of memory are free.

        Grids of several sizes are timed for `seconds`. The result is the highest of their median rates.
        """
        device, deadline = self._device, time.perf_counter() + seconds
        if self._readable is None:
            free, _ = device.memory.room()
            nbytes = min(_READ_BYTES, free // 4) // 16 * 16
            self._readable = device.upload(np.zeros(nbytes // 4, np.float32))
        source, loaded = self._readable, self._load("read_peak")
        times: dict[int, list[float]] = {waves: [] for waves in _READ_WAVES}
        while not times[_READ_WAVES[-1]] or time.perf_counter() < deadline:
            for waves in _READ_WAVES:
                blocks = waves * int(self._facts["sms"])
                args = (source, np.int64(source.nbytes // 16), self._out)
                times[waves] += device.time(loaded, Launch(args, (blocks, 1, 1), (_READ_THREADS, 1, 1)), 3)
        best = min(statistics.median(found) for found in times.values())
        return float(source.nbytes / (best * 1e3))

    def _repeat(self, seconds: float) -> list[float]:
        deadline = time.perf_counter() + seconds
        times: list[float] = []
        while not times or time.perf_counter() < deadline:
            times += self._ffma(4)
        return times

    def _ffma(self, repeats: int) -> list[float]:
        args = (self._out, np.int32(self._rounds), np.float32(0.999), np.float32(0.001))
        launch = Launch(args, (self._blocks, 1, 1), (_THREADS, 1, 1))
        return self._device.time(self._load("ffma_peak"), launch, repeats)

    def _load(self, entry: str) -> Any:
        if entry not in self._loaded:
            built = self._device.build(program(entry, self._device.target({})))
            self._loaded[entry] = self._device.load(built)
        return self._loaded[entry]
