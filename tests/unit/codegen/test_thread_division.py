"""The jobs that `thread_division` states are those that the compiled product publishes in the pool."""

from __future__ import annotations

import numpy as np
import pytest

import gemmlab
from gemmlab.codegen import runtime
from gemmlab.codegen.pool import JOBS
from gemmlab.codegen.thread_division import ThreadDivision
from gemmlab.kernels.gemm_cpu.threaded import KERNEL, divide
from gemmlab.ops.gemm_problem import GemmProblem


def divided(m: int, n: int, k: int, threads: int, *, trans_b: bool = False) -> ThreadDivision:
    return divide(KERNEL.configure(), GemmProblem(m, n, k, trans_b=trans_b), threads)


@pytest.mark.parametrize("threads", [2, 3, 7])
@pytest.mark.parametrize(
    ("extents", "trans_b"),
    [
        ((300, 500, 400), False), ((64, 2000, 300), False), ((2000, 64, 300), True), ((40, 40, 40), False),
        ((3000, 1, 400), False), ((1, 3000, 400), False), ((1, 3000, 400), True), ((100, 1, 100), False),
        ((1000, 1000, 70), True),
    ],
)  # fmt: skip
def test_the_compiled_product_publishes_so_many_jobs(
    extents: tuple[int, int, int], trans_b: bool, threads: int
) -> None:
    m, n, k = extents
    a, b = np.ones((m, k), np.float32), np.ones((n, k) if trans_b else (k, n), np.float32)
    gemmlab.gemm(a, b, trans_b=trans_b, kernel="threaded", threads=threads)
    jobs = runtime.runtime().word(JOBS)
    jobs.value = 0
    gemmlab.gemm(a, b, trans_b=trans_b, kernel="threaded", threads=threads)
    found = divided(m, n, k, threads, trans_b=trans_b)
    last = found.rectangles
    if found.shared_block is not None:
        last = tuple(one for one in last if one.col // found.shared_block[1] == last[-1].col // found.shared_block[1])
    # A product of one job does not go to the pool.
    assert jobs.value == (len(last) if len(last) > 1 else 0)


@pytest.mark.parametrize("extents", [(1, 1, 1), (300, 500, 400), (4096, 256, 4096), (257, 12_000, 900), (5000, 1, 99)])
@pytest.mark.parametrize("threads", [1, 2, 61])
@pytest.mark.parametrize("trans_b", [False, True])
def test_every_element_is_in_one_rectangle(extents: tuple[int, int, int], threads: int, trans_b: bool) -> None:
    m, n, k = extents
    found = divided(m, n, k, threads, trans_b=trans_b)
    covered = np.zeros((m, n), np.int32)
    for one in found.rectangles:
        covered[one.row : one.row + one.rows, one.col : one.col + one.cols] += 1
    assert (covered == 1).all()
    assert found.threads <= threads


def test_an_empty_result_has_no_jobs_and_empty_sums_are_one_job() -> None:
    assert divided(0, 5, 5, 4).rectangles == ()
    assert len(divided(3000, 3000, 0, 4).rectangles) == 1
