"""The compiled sums of the `reduce_threaded` kernel, called on NumPy arrays: `gemmlab.sum` on a CPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.codegen import runtime as shared
from gemmlab.codegen.reductions import SERIAL, SUMS
from gemmlab.devices.cpu import CpuDevice, CpuLoaded, start_workers
from gemmlab.dispatch.built_in import built_in
from gemmlab.dispatch.sum_plans import SumPlan
from gemmlab.kernels.instances import load
from gemmlab.kernels.reduce_cpu.reduce_threaded import KERNEL, PYTHON_SUM

Float32Array = npt.NDArray[np.float32]
_SUM = 0


@dataclass(frozen=True, slots=True)
class CpuSums:
    """The compiled code for sums.

    `python_entry` takes a NumPy array itself; it is `None` if this interpreter does not allow that.
    """

    python_entry: Callable[..., Any] | None
    c_entry: Callable[[int, int, int, int], int]
    loaded: CpuLoaded

    def run(self, x: Float32Array, plan: SumPlan, threads: int | None) -> Any:
        """Return the sums of `x` by its plan, as a new array; for a result without axes as a float, or without
        `python_entry` as an array without axes.

        `threads=None` stands for the default number of threads. Raises `MemoryError`.
        """
        if plan.elements == 0:
            return np.zeros(plan.shape, np.float32) if plan.shape else 0.0
        count = 1 if plan.elements < SERIAL else self._helped(threads)
        result = None if self.python_entry is None else self.python_entry(x, plan.address, count)
        if result is None:
            result = np.empty(plan.made, np.float32)
            self.c_entry(plan.address, x.ctypes.data, result.ctypes.data, count)
        if plan.made != plan.shape:
            result = np.array(np.broadcast_to(result, plan.shape))
        return result

    def _helped(self, threads: int | None) -> int:
        runtime = shared.runtime()
        count = runtime.default_threads if threads is None else min(threads, shared.MOST_THREADS)
        if runtime.workers < count - 1:
            start_workers(self.loaded, count)
        return count


def load_sums() -> CpuSums:
    """Return the code for sums, compiled (or fetched) and linked. Raises `CompileError` and `MemoryError`."""
    device, kernel = CpuDevice(), KERNEL
    config = {**kernel.configure(), "OPERATOR": _SUM}
    loaded: CpuLoaded = load(kernel, device, config)
    start_workers(loaded, 1)
    word, place = ctypes.c_int64, ctypes.c_void_p
    entry = ctypes.CFUNCTYPE(word, place, place, place, word)(loaded.addresses[SUMS])
    return CpuSums(built_in("gemmlab_sum", loaded.addresses[PYTHON_SUM]), entry, loaded)
