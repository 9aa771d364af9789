"""The pool of threads inside compiled code: every job is done once, whoever is there to do it."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest

from gemmlab.codegen.pool import TASK_SIGNATURE, emit_pool, pack_words
from gemmlab.codegen.runtime import Runtime
from gemmlab.ir.compile import compile_object, load_object
from gemmlab.ir.module import Module
from gemmlab.ir.target import host_target
from gemmlab.ir.types import F32, I8, I64, pointer

Go = Callable[[int, int, int, int], int]
"""`go(counters, jobs, threads, spin)` -> the largest number of threads seen inside at once."""
_WORKERS = 3


@cache
def pool() -> tuple[Go, Runtime]:
    """A pool of its own with three workers; a job counts itself in `counters[job]`, after waiting `spin` rounds."""
    module = Module(host_target())
    made = emit_pool(module)
    params = list(zip(("context", "job", "workspace"), TASK_SIGNATURE, strict=True))
    with module.function("task", params) as task:
        context, job, workspace = task.args
        counters = task.cast(context[0], I64)
        task.cast(workspace, I64)[0] = task.cast(workspace, I64)[0] + 1
        now = task.atomic_add(context + 1, 1) + 1
        with task.range(context[3]):
            task.pause()
        with task.when(now > task.atomic_load(context + 2)):
            task.atomic_store(context + 2, now)
        task.atomic_add(context + 1, -1)
        task.atomic_add(counters + job, 1)
        task.finish()
    names = [("pool", pointer(I8)), ("own", pointer(F32)), ("counters", I64), ("jobs", I64), ("threads", I64)]
    with module.function("go", [*names, ("spin", I64)], I64, exported=True) as fn:
        where, own, counters, jobs, threads, spin = fn.args
        context = pack_words(fn, [counters, 0, 0, spin])
        fn.call(made.run, where, fn.function_address(task), context, jobs, threads, own)
        fn.finish(context[2])
    symbols = ["go", "gemmlab_pool_init", "gemmlab_worker"]
    loaded = load_object(compile_object(module.text(), module.target), symbols)
    runtime = Runtime()
    runtime.start(loaded.addresses["gemmlab_pool_init"], loaded.addresses["gemmlab_worker"], 4096, lambda: 2)
    runtime.ensure_workers(_WORKERS)
    signature = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 4]
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *signature)(loaded.addresses["go"])

    def go(counters: int, jobs: int, threads: int, spin: int) -> int:
        own = np.zeros(8, np.int64)
        return int(call(runtime.address, own.ctypes.data, counters, jobs, threads, spin))

    return go, runtime


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 50])
def test_every_job_is_done_once(threads: int) -> None:
    go, _ = pool()
    counters = np.zeros(64, np.int64)
    calls = 3000
    for call in range(calls):
        go(counters.ctypes.data, call % 64, threads, 0)
    expected = [sum(call % 64 > job for call in range(calls)) for job in range(64)]
    assert counters.tolist() == expected


@pytest.mark.in_turns(20)
def test_as_many_threads_take_part_as_were_asked_for_and_no_more() -> None:
    go, runtime = pool()
    assert runtime.workers == _WORKERS
    counters = np.zeros(40, np.int64)
    for threads in (1, 2, 3):
        seen = max(go(counters.ctypes.data, 40, threads, 20_000) for _ in range(10))
        assert seen <= threads
        assert seen > 1 or threads == 1
    assert go(counters.ctypes.data, 1, 4, 1000) == 1, "one job needs no help"
    assert go(counters.ctypes.data, 0, 4, 1000) == 0


@pytest.mark.in_turns(20)
def test_workers_that_sleep_are_woken() -> None:
    go, _ = pool()
    counters = np.zeros(40, np.int64)
    for _ in range(5):
        time.sleep(0.01)
        assert max(go(counters.ctypes.data, 40, 2, 20_000) for _ in range(5)) == 2
    assert set(counters.tolist()) == {25}


def test_callers_at_once_each_get_their_jobs_done() -> None:
    go, _ = pool()
    start = threading.Barrier(6)

    def calls(_index: int) -> list[int]:
        counters = np.zeros(17, np.int64)
        start.wait()
        for _ in range(2000):
            go(counters.ctypes.data, 17, 3, 5)
        return counters.tolist()

    with ThreadPoolExecutor(6) as callers:
        assert list(callers.map(calls, range(6))) == [[2000] * 17] * 6
