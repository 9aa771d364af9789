"""Measure on this machine a core's time for a multiply-add and for an element of A and of B, and two threads' time for
a turn of the pool.

Calls take turns, and the least time of each counts: on a machine that does other work, too, some calls are undisturbed.
The time of a product is linear in each of its extents, so straight lines through least times give the constants.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

import gemmlab
from gemmlab.codegen.pool import TASK_SIGNATURE, emit_pool, pack_words
from gemmlab.codegen.runtime import Runtime
from gemmlab.ir.compile import compile_object, load_object
from gemmlab.ir.module import Module
from gemmlab.ir.target import host_target
from gemmlab.ir.types import F32, I8, I64, pointer
from scaling.model import Constants

DEPTH, WIDTH = 768, 1024
ROWS, COLUMNS = (48, 96, 192, 384), (64, 128, 256, 512)
Array = npt.NDArray[np.float32]
Call = Callable[[], object]


def least(calls: Mapping[object, Call], seconds: float) -> dict[object, float]:
    """Return the least time of each call in nanoseconds; they take turns for `seconds` seconds."""
    times = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, call in calls.items():
            start = time.perf_counter_ns()
            call()
            times[name] = min(times[name], time.perf_counter_ns() - start)
    return times


def measured(seconds: float) -> tuple[Constants, dict[str, list[float]]]:
    """Measure for `seconds` seconds, and a quarter more for the pool. Return the constants, and by series the times in
    microseconds that they follow from.
    """
    rng = np.random.default_rng(1)

    def matrix(rows: int, cols: int) -> Array:
        return rng.random((rows, cols), np.float32)

    def product(a: Array, b: Array) -> Call:
        out = np.empty((a.shape[0], b.shape[1]), np.float32)
        return lambda: gemmlab.gemm(a, b, out=out, threads=1)

    rights: dict[str, Array] = {
        "rows": matrix(DEPTH, WIDTH), "columns": matrix(WIDTH, DEPTH).T, "gaps": matrix(DEPTH, 2 * WIDTH)[:, ::2],
    }  # fmt: skip
    calls: dict[object, Call] = {
        (name, rows): product(matrix(rows, DEPTH), b) for name, b in rights.items() for rows in ROWS
    }
    tall = matrix(WIDTH, DEPTH)
    calls |= {("a", cols): product(tall, matrix(DEPTH, cols)) for cols in COLUMNS}
    times = least(calls, seconds)
    series = {name: [times[name, rows] / 1e3 for rows in ROWS] for name in rights}
    series["a"] = [times["a", cols] / 1e3 for cols in COLUMNS]
    slope, _rest = _line(ROWS, series["rows"], DEPTH * WIDTH)
    rests = {name: max(_line(ROWS, series[name], DEPTH * WIDTH)[1], 0.0) for name in rights}
    turn = turn_ns(seconds / 4)
    series["turn"] = [turn / 1e3]
    return Constants(
        multiply_add=slope,
        a_element=max(_line(COLUMNS, series["a"], DEPTH * WIDTH)[1], 0.0),
        b_element=rests,
        turn=turn,
    ), series


def _line(extents: Sequence[int], times_us: Sequence[float], others: int) -> tuple[float, float]:
    """Return the slope of a straight line through the times, and its value at extent 0, both in nanoseconds divided by
    `others`, the product of the other two extents.
    """
    slope, rest = np.polyfit(extents, np.array(times_us) * 1e3 / others, 1)
    return float(slope), float(rest)


def turn_ns(seconds: float) -> float:
    """Return the nanoseconds of a turn of the worker pool with two jobs that only wait for each other, on two threads
    that do not sleep.
    """
    module = Module(host_target())
    pool = emit_pool(module)
    params = list(zip(("context", "job", "workspace"), TASK_SIGNATURE, strict=True))
    with module.function("meeting", params) as task:
        context = task.args[0]
        task.atomic_add(context, 1)
        with task.loop() as met:
            task.leave_if(met, task.atomic_load(context) >= context[1])
            task.pause()
        task.finish()
    with module.function("meet", [("pool", pointer(I8)), ("own", pointer(F32)), ("times", I64)], exported=True) as fn:
        where, own, times = fn.args
        context = pack_words(fn, [0, 0])
        with fn.range(times) as turn:
            context[1] = (turn + 1) * 2
            fn.call(pool.run, where, fn.function_address(task), context, 2, 2, own)
        fn.finish()
    symbols = ["meet", "gemmlab_pool_init", "gemmlab_worker"]
    loaded = load_object(compile_object(module.text(), module.target), symbols).addresses
    runtime = Runtime()
    runtime.start(loaded["gemmlab_pool_init"], loaded["gemmlab_worker"], 4096, lambda: 2)
    runtime.ensure_workers(1)
    meet = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(loaded["meet"])
    workspace, count = np.zeros(8, np.int64), 50
    return least({"meet": lambda: meet(runtime.address, workspace.ctypes.data, count)}, seconds)["meet"] / count
