"""Kernels that take few problems are checked on many all the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gemmlab.core.expr import parse
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.claims import Restriction
from gemmlab.kernels.fitting import fitted
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.verify.check import check_kernel
from gemmlab.verify.far_rows import far_rows
from support.cuda_source import needs_compiler
from support.users_files import FLAGS, kernel_of

OP = GemmOp()


def restricted(*conditions: str) -> Kernel:
    return replace(find_kernel("naive_ijk"), restrictions=tuple(Restriction(parse(text)) for text in conditions))


@pytest.mark.parametrize(
    ("conditions", "problem", "expected"),
    [
        ([], "5x6x7 0.5 2 9 9 9", "5x6x7 0.5 2 9 9 9"),
        (["beta == 0"], "5x6x7 0.5 2 9 9 9", "5x6x7 0.5 0 9 9 9"),
        (["alpha == 1"], "5x6x7 0.5 2 9 9 9", "5x6x7 1 2 9 9 9"),
        (["beta == 1", "ldb == N"], "5x6x7 0.5 2 9 9 9", "5x6x7 0.5 1 9 6 9"),
        (["M == N", "N == K"], "4x2x8 0.5 2 9 9 9", "4x4x4 0.5 2 5 11 11"),
        (["M == N", "N == K"], "4x2x8 0.5 2 8 2 2", "4x4x4 0.5 2 4 4 4"),
        (["M % 32 == 0", "N % 32 == 0"], "5x6x7 1 0 8 9 6", "32x32x7 1 0 8 35 32"),
        (["K % 8 == 0", "lda * 4 % 16 == 0"], "5x6x7 1 0 12 6 6", "5x6x8 1 0 16 6 6"),
        (["lda * 4 % 16 == 0"], "5x6x7 1 0 9 6 6", "5x6x7 1 0 12 6 6"),
        (["K % 8 == 0", "ldb == N"], "5x6x7 1 0 9 9 9", "5x6x8 1 0 10 6 9"),
        (["M == N", "N == K", "M % 16 == 0"], "4x2x8 1 0 8 2 2", "16x16x16 1 0 16 16 16"),
        (["M % 64 == 0", "K % 8 == 0"], "5x6x7 1 0 7 6 6", "64x6x8 1 0 8 6 6"),
        (["lda * 4 % 16 == 0"], "5x6x7 1 0 7 6 6", "5x6x8 1 0 8 6 6"),
        (["M == N", "N == K"], "0x2x8 1 0 8 2 2", "0x0x0 1 0 1 1 1"),
        (["M == 3"], "5x6x7 1 0 7 6 6", None),
    ],
)
def test_a_problem_is_changed_as_little_as_makes_it_fit(
    conditions: list[str], problem: str, expected: str | None
) -> None:
    def parsed(text: str) -> GemmProblem:
        shape, alpha, beta, *strides = text.split()
        lda, ldb, ldc = map(int, strides)
        m, n, k = map(int, shape.split("x"))
        return GemmProblem(m, n, k, float(alpha), float(beta), lda, ldb, ldc)

    found = fitted(restricted(*conditions), OP, {}, [parsed(problem)])
    assert found == ([] if expected is None else [parsed(expected)])


def test_each_comes_once_and_in_order() -> None:
    problems = [GemmProblem(5, 5, 5), GemmProblem(32, 32, 32), GemmProblem(7, 7, 7), GemmProblem(16, 16, 16)]
    kernel = restricted("M % 16 == 0 and N % 16 == 0 and K % 16 == 0")
    assert [problem.m for problem in fitted(kernel, OP, {}, problems)] == [16, 32]


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("name", FLAGS)
def test_the_whole_contract_is_tried_as_far_as_it_goes(name: str) -> None:
    kernel = kernel_of(name)
    cases = list(OP.cases(kernel.layouts, np.random.default_rng(0)))
    device = open_device("emulated")
    report = check_kernel(kernel, device, OP)
    assert report.passed, report.explain()
    far = list(far_rows(place(kernel, device), OP))
    assert report.cases == len(fitted(kernel, OP, kernel.configure(), cases)) + len(far) > 20
