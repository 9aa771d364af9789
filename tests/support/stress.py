"""Processes of threads that multiply without end, each result compared bit by bit.

Run it longer with `python -m support.stress 60` in the folder tests.

Half of the processes are forked from one that has computed, half are spawned. Every thread takes turns at `gemm`, at
`blas.sgemm` and at the native entry, on small and large matrices, with and without the library's own threads.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import threading
import time
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np

from gemmlab import blas, gemm
from support.exact import pair

THREADS = 8
_SIZES = (5, 33, 64, 150, 260)


def calls(seed: int, until: float) -> tuple[int, int]:
    """Products computed until then, and how many of them were wrong."""
    rng = np.random.default_rng(seed)
    operands = [pair(seed, n) for n in _SIZES]
    done = wrong = 0
    while time.monotonic() < until:
        a, b, expected = operands[rng.integers(len(operands))]
        n, way = len(a), rng.integers(4)
        if way == 0:
            result = gemm(a, b, threads=int(rng.integers(1, 5)))
        elif way == 1:
            result = gemm(a, b, beta=2.0, c=expected) - 2 * expected
        elif way == 2:
            result = blas.sgemm(1, a, b)
        else:
            result = np.full_like(a, np.nan)
            at = a.ctypes.data, n, b.ctypes.data, n
            blas.cblas_sgemm(101, 111, 111, n, n, n, 1.0, *at, 0.0, result.ctypes.data, n)
        wrong += not np.array_equal(result, expected)
        done += 1
    return done, wrong


def process(seed: int, seconds: float, told: Any) -> None:
    """One process's part: what its threads did, and by how many KiB it grew in the second half."""
    start = time.monotonic()
    counts: list[tuple[int, int]] = []
    threads = [
        threading.Thread(target=lambda mine: counts.append(calls(mine, start + seconds)), args=(8 * seed + index,))
        for index in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    time.sleep(seconds / 2)
    early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for thread in threads:
        thread.join()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - early
    done, wrong = (sum(column) for column in zip(*counts, strict=True))
    told.put({"threads": len(counts), "done": done, "wrong": wrong, "grown_kib": grown})


def main(seconds: float) -> dict[str, Any]:
    """What every process tells, once all have ended; this one computes beside them."""
    calls(0, time.monotonic() + 0.1)
    blas.pointers()
    spawned, forked = multiprocessing.get_context("spawn"), multiprocessing.get_context("fork")
    told = spawned.Queue()
    running: list[BaseProcess] = [
        *(spawned.Process(target=process, args=(seed, seconds, told)) for seed in (1, 2)),
        *(forked.Process(target=process, args=(seed, seconds, told)) for seed in (3, 4)),
    ]
    for one in running:
        one.start()
    _, wrong = calls(99, time.monotonic() + seconds / 2)
    reports = [told.get(timeout=seconds + 60) for _ in running]
    for one in running:
        one.join(60)
    return {"processes": reports, "wrong_here": wrong, "exit_codes": [one.exitcode for one in running]}


if __name__ == "__main__":
    print(json.dumps(main(float(sys.argv[1])), indent=1))  # noqa: T201 - what it is for
