"""Reference rates of one thread, in short bursts: multiply-adds in registers alone, and the register tile alone."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.codegen.microkernel import FLOATS, best_tile, emit_microkernel
from gemmlab.ir.build import load_functions
from gemmlab.ir.compile import LoadedObject
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.target import host_target
from gemmlab.ir.types import F32, I64, vector

_STEPS = 100_000
"""Rounds of the peak loop in a burst: some 400 us."""
_TILE_DEPTH = 512
_TILE_CALLS = 200

Burst = Callable[[], float]
"""A function that runs for some 400 us and returns the rate in GFLOP/s."""


def chains(module: Module) -> int:
    """Return the number of independent accumulators: three quarters of the registers, enough to keep all multiply-add
    units busy while each accumulator waits for its previous result.
    """
    return module.target.registers * 3 // 4


def emit_peak(module: Module) -> Function:
    """Emit the exported `peak(steps, values)`: `steps` rounds of multiply-adds in registers.

    A round is `chains` multiply-adds of `lanes` float32 each, with the factor values[0] and the addend values[1]. The
    sum of all accumulators is written to values[2 .. 2 + lanes).
    """
    lanes = module.lanes
    with module.function("peak", [("steps", I64), ("values", FLOATS)], exported=True) as fn:
        steps, values = fn.args
        factor, addend = (fn.splat(fn.load(values + index), lanes) for index in (0, 1))
        acc = [fn.var(vector(F32, lanes), factor * (index + 1.0)) for index in range(chains(module))]
        with fn.range(steps):
            for total in acc:
                total.set(fn.fma(total.read(), factor, addend))
        result = acc[0].read()
        for total in acc[1:]:
            result = result + total.read()
        fn.store(values + 2, result)
        fn.finish()
    return fn


def emit_tile_probe(module: Module) -> Function:
    """Emit the exported `tile(calls, k, a, b, c)`: `calls` times the full register tile, C = A B.

    Rows of A are k + 16 floats apart; B is a packed strip; rows of C are adjacent.
    """
    tile = best_tile(module.target)
    micro = emit_microkernel(module, tile.rows, tile.vectors, panel=False, unroll=tile.unroll)
    params = [("calls", I64), ("k", I64), ("a", FLOATS), ("b", FLOATS), ("c", FLOATS)]
    with module.function("tile", params, exported=True) as fn:
        calls, k, a, b, c = fn.args
        with fn.range(calls):
            fn.call(micro, k, a, k + 16, b, tile.cols, c, tile.cols, 1.0, 0.0, tile.cols, b, 0, 0, 0)
        fn.finish()
    return fn


@cache
def _linked() -> LoadedObject:
    def emit(module: Module) -> None:
        emit_peak(module)
        emit_tile_probe(module)

    return load_functions("probes", ["peak", "tile"], emit)


def peak_burst() -> Burst:
    """Return a burst that measures multiply-adds in registers alone."""
    target = host_target()
    probe = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(_linked().addresses["peak"])
    values = np.full(64, 0.5, np.float32)
    flops = 2 * chains(Module(target)) * target.lanes * _STEPS
    return _timed(probe, (_STEPS, values.ctypes.data_as(ctypes.c_void_p)), flops)


def tile_burst() -> Burst:
    """Return a burst that measures the register tile, with k = 512, on operands that stay in L1 and L2."""
    tile = best_tile(host_target())
    word = ctypes.c_void_p
    probe: Any = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, word, word, word)(_linked().addresses["tile"])
    operands = [
        _aligned(size) for size in (tile.rows * (_TILE_DEPTH + 16), tile.cols * _TILE_DEPTH, tile.rows * tile.cols)
    ]
    flops = 2 * tile.rows * tile.cols * _TILE_DEPTH * _TILE_CALLS
    return _timed(probe, (_TILE_CALLS, _TILE_DEPTH, *(operand.ctypes.data_as(word) for operand in operands)), flops)


def _aligned(floats: int) -> npt.NDArray[np.float32]:
    raw = np.random.default_rng(0).standard_normal(floats + 16, dtype=np.float32)
    start = -raw.ctypes.data % 64 // 4
    return raw[start : start + floats]


def _timed(call: Any, args: tuple[Any, ...], flops: int) -> Burst:
    def burst() -> float:
        start = time.perf_counter_ns()
        call(*args)
        return flops / (time.perf_counter_ns() - start)

    return burst
