"""The compiled sums of the `reduce_threaded` kernel, called on NumPy memory: the library's way onto the CPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gemmlab.codegen import runtime as shared
from gemmlab.codegen.reductions import COLUMN_SUMS, ROW_SUMS, SERIAL
from gemmlab.devices.cpu import CpuDevice, CpuLoaded, start_workers
from gemmlab.kernels.reduce_cpu.reduce_threaded import KERNEL

_Entry = Callable[[int, int, int, int, int, int], int]
_SUM = 0


@dataclass(frozen=True, slots=True)
class CpuSums:
    """Sums of many rows or columns, given by addresses and strides in elements."""

    _rows: _Entry
    _columns: _Entry
    _loaded: CpuLoaded

    def rows(self, count: int, length: int, stride: int, x: int, out: int, threads: int | None) -> None:
        """`out[r]` from `length` neighbours at `x + r * stride`."""
        self._rows(count, length, stride, x, out, self._ready(count * length, threads))

    def total(self, length: int, x: int, threads: int | None) -> np.float32:
        """The sum of `length` neighbours at `x`."""
        out = ctypes.c_float()
        self._rows(1, length, 0, x, ctypes.addressof(out), self._ready(length, threads))
        return np.float32(out.value)

    def columns(self, count: int, length: int, stride: int, x: int, out: int, threads: int | None) -> None:
        """`out[c]` from `length` elements `stride` apart, the first at `x + c`."""
        self._columns(count, length, stride, x, out, self._ready(count * length, threads))

    def _ready(self, elements: int, threads: int | None) -> int:
        if elements < SERIAL:
            return 1
        runtime = shared.runtime()
        count = runtime.default_threads if threads is None else min(threads, shared.MOST_THREADS)
        if runtime.workers < count - 1:
            start_workers(self._loaded, count)
        return count


def load_sums() -> CpuSums:
    """Compile (or fetch) and link the sums. Raises `CompileError`, `MemoryError`."""
    device, kernel = CpuDevice(), KERNEL
    config = {**kernel.configure(), "OPERATOR": _SUM}
    loaded = device.load(device.build(kernel.program(config, device.target(config))))
    start_workers(loaded, 1)
    word, place = ctypes.c_int64, ctypes.c_void_p
    prototype = ctypes.CFUNCTYPE(word, word, word, word, place, place, word)
    rows, columns = (prototype(loaded.addresses[name]) for name in (ROW_SUMS, COLUMN_SUMS))
    return CpuSums(rows, columns, loaded)
