"""A driver whose kernels sum, for tests of `gemmlab.sum` without a GPU."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from support.fake_scratch import ScratchDriver

_AXES = 12
"""Words of the axes of the result, with which the arguments of kernels along axes begin."""
SIZES = {
    "reduce_peak": (8,) * 5,
    "sum_rows": (*(8,) * 18, 4),
    "sum_short_rows": (*(8,) * 16, 4),
    "sum_columns": (*(8,) * 22, 4, 4),
}
"""Bytes of each kernel's arguments."""


def words(address: int, count: int) -> npt.NDArray[np.float32]:
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address)) if count else np.empty(0, np.float32)


@dataclass
class SumDriver(ScratchDriver):
    """Every launch writes the sums that its kernel would write, and checks that its tickets are zero."""

    threads: int = 1024

    def func_get_param_info(self, function: str, index: int) -> tuple[int, ...]:
        sizes = SIZES[_kernel(function)]
        return (0, 8 * index, sizes[index]) if index < len(sizes) else (1, 0, 0)

    def launch_kernel(self, function: str, *arguments: Any) -> int:
        self.launches.append((_kernel(function), *arguments[:8]))
        sizes = SIZES[_kernel(function)]
        places = (ctypes.c_void_p * len(sizes)).from_address(arguments[8])
        values = [
            (ctypes.c_int64 if size == 8 else ctypes.c_int32).from_address(place or 0).value
            for size, place in zip(sizes, places, strict=True)
        ]
        if "reduce_peak" in function:
            count, x, out, *scratch = values
            words(out, 1)[0] = words(x, count).sum()
        else:
            scratch = self._along_axes(function, values)
        if scratch:
            self.note_scratch(scratch[0], scratch[1])
        return 0

    def _along_axes(self, function: str, values: list[int]) -> list[int]:
        extents, steps, outs = (values[start : start + 4] for start in range(0, _AXES, 4))
        terms = 3 if "sum_columns" in function else 1
        along, apart = values[_AXES : _AXES + terms], values[_AXES + terms : _AXES + 2 * terms]
        x, out, *rest = values[_AXES + 2 * terms :]
        if 0 not in (*extents, *along):
            array = _at(x, (*extents, *along), (*steps, *apart))
            _at(out, extents, outs)[...] = array.sum(axis=tuple(range(4, 4 + terms)))
        elif 0 not in extents:
            _at(out, extents, outs)[...] = 0
        return rest[:2] if len(rest) > 2 and "short" not in function else []


def _kernel(function: str) -> str:
    return next(name for name in SIZES if name in function)


def _at(address: int, shape: Any, steps: Any) -> npt.NDArray[np.float32]:
    """An array of any steps, in elements."""
    return np.lib.stride_tricks.as_strided(words(address, 1), shape, [4 * step for step in steps])
