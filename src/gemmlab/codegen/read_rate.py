"""Reference rate for memory-bound work: reading a long row in order, by the code that sums a row."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.codegen.rowsum import SUM, emit_row
from gemmlab.core.hardware import cpu_info
from gemmlab.ir.build import load_functions
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I64, pointer

_LEAST_BYTES, _MOST_BYTES = 128 << 20, 512 << 20
_CACHES = 2
"""Size of the data that a thread reads, in multiples of the last-level cache.

The data are at least `_LEAST_BYTES` and at most `_MOST_BYTES`.
"""


def read_burst(part: int) -> Callable[[], float]:
    """Return a function that reads the array of thread number `part` once and returns the rate in 10^9 bytes a second.

    Functions of the same `part` read the same array.
    """
    row, entry = _row(part), _entry()

    def burst() -> float:
        start = time.perf_counter_ns()
        entry(row.size, row.ctypes.data)
        return float(row.nbytes / (time.perf_counter_ns() - start))

    return burst


@cache
def _row(_part: int) -> npt.NDArray[np.float32]:
    """Return the array that a thread reads, with every page present; the same one for the same part."""
    last = max((each.size_bytes for each in cpu_info().caches), default=0)
    return np.ones(min(_MOST_BYTES, max(_LEAST_BYTES, _CACHES * last)) // 4, np.float32)


def emit_read(module: Module) -> Function:
    """Emit the exported `read_row(n, x)`: the sum of `n` contiguous float32."""
    row = emit_row(module, SUM)
    with module.function("read_row", [("n", I64), ("x", pointer(F32))], F32, exported=True) as fn:
        fn.finish(fn.call(row, *fn.args))
    return fn


@cache
def _entry() -> Any:
    code = load_functions("reading", ["read_row"], emit_read)
    return ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64, ctypes.c_void_p)(code.addresses["read_row"])
