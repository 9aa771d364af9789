"""The compiled product for a requested precision, called on NumPy views: `gemmlab.gemm` on a CPU."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.codegen import runtime as shared
from gemmlab.codegen.call_entries import PYTHON_ENTRY, STACK_ENTRY
from gemmlab.codegen.entry import NO_WORKSPACE
from gemmlab.codegen.entry import STACK_ENTRY as STACK_SIGNATURE
from gemmlab.devices.cpu import CpuDevice, CpuLoaded, start_workers
from gemmlab.dispatch.built_in import built_in
from gemmlab.dispatch.cpu_precision import cpu_way
from gemmlab.dispatch.request import rows_contiguous
from gemmlab.kernels.instances import load

Float32Array = npt.NDArray[np.float32]

_C_TYPES: dict[str, Any] = {"i64": ctypes.c_int64, "float": ctypes.c_float, "ptr": ctypes.c_void_p}


@dataclass(frozen=True, slots=True)
class CpuProduct:
    """The compiled code for `C = alpha * A B + beta * C`.

    `python_entry` takes NumPy arrays themselves; it is `None` if this interpreter does not allow it.
    """

    python_entry: Callable[..., Float32Array | None] | None
    stack_entry: Callable[..., int]
    loaded: CpuLoaded

    def run(
        self,
        a: Float32Array,
        b: Float32Array,
        c: Float32Array,
        alpha: float,
        beta: float,
        threads: int | None,
    ) -> None:
        """Compute `c = alpha * a @ b + beta * c` for stacks of matrices with equal leading axes and any strides.

        c is not read if beta is 0. `threads=None` stands for the default number of threads.
        """
        if c.size == 0:
            return
        if not _rows_contiguous(c):
            if _rows_contiguous(c.swapaxes(-1, -2)):
                self.run(b.swapaxes(-1, -2), a.swapaxes(-1, -2), c.swapaxes(-1, -2), alpha, beta, threads)
                return
            plain = np.array(c, order="C") if beta != 0.0 else np.empty(c.shape, np.float32)
            self.run(a, b, plain, alpha, beta, threads)
            np.copyto(c, plain)
            return
        left, right = _whole_strides(a), _whole_strides(b)
        count = shared.runtime().default_threads if threads is None else min(threads, shared.MOST_THREADS)
        start_workers(self.loaded, count)
        while self._call(left, right, c, alpha, beta, count) == NO_WORKSPACE:
            if not shared.runtime().add_slot():
                time.sleep(0.001)

    def _call(self, a: Float32Array, b: Float32Array, c: Float32Array, alpha: float, beta: float, threads: int) -> int:
        leading = c.shape[:-2]
        of_axes = zip(leading, *(x.strides[:-2] for x in (a, b, c)), strict=True)
        words = [word for extent, *steps in of_axes for word in (extent, *(step // 4 for step in steps))]
        axes = (ctypes.c_int64 * len(words))(*words)
        return self.stack_entry(
            *c.shape[-2:],
            a.shape[-1],
            alpha,
            a.ctypes.data,
            a.strides[-2] // 4,
            a.strides[-1] // 4,
            b.ctypes.data,
            b.strides[-2] // 4,
            b.strides[-1] // 4,
            beta,
            c.ctypes.data,
            c.strides[-2] // 4,
            threads,
            ctypes.addressof(axes),
            len(leading),
        )


@cache
def load_product(precision: str) -> CpuProduct:
    """Return the code for products of a requested precision, compiled (or fetched) and linked once in a process.

    Tuning does not change it while the process runs. Raises `CompileError`, `DeviceError` and `MemoryError`.
    """
    way = cpu_way(precision)
    loaded: CpuLoaded = load(way.kernel, CpuDevice(), way.config)
    start_workers(loaded, 1)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *(_C_TYPES[str(type_)] for _name, type_ in STACK_SIGNATURE))
    return CpuProduct(
        built_in("gemmlab_gemm", loaded.addresses[PYTHON_ENTRY]), prototype(loaded.addresses[STACK_ENTRY]), loaded
    )


def _rows_contiguous(stack: Float32Array) -> bool:
    """Return whether the rows of every matrix of a stack are contiguous."""
    return all(step % 4 == 0 for step in stack.strides[:-2]) and rows_contiguous(stack[(0,) * (stack.ndim - 2)])


def _whole_strides(view: Float32Array) -> Float32Array:
    """Return the view itself, or a copy if its strides are not whole elements (fields of packed records)."""
    return view if all(stride % 4 == 0 for stride in view.strides) else np.array(view, order="C")
