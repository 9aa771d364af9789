"""Kernels of batches, run from their machine code: right at the edges, and counted as their files say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import bind
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.batch import BatchOp
from gemmlab.ops.batch_problem import BatchProblem
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.ops.op import Op, Problem
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler

pytestmark = needs_compiler
OP = BatchOp()
CONFIGURATIONS = (
    {"BM": 32, "BN": 32, "TM": 4, "TN": 4, "BK": 16}, {"BM": 32, "BN": 128, "TM": 4, "TN": 8, "BK": 16},
    {"BM": 128, "BN": 32, "TM": 16, "TN": 4}, {"BM": 128, "BN": 128}, {"BM": 128, "BN": 256, "TM": 16},
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90"])
@pytest.mark.parametrize("kernel", ["batched", "grouped", "batched_rows"])
def test_the_whole_contract(kernel: str, arch: str) -> None:
    report = check_kernel(find_kernel(kernel), open_device(f"emulated:{arch}"), OP)
    assert report.passed, report.explain()
    assert report.cases > 100


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("kernel", ["batched", "grouped"])
@pytest.mark.parametrize("config", CONFIGURATIONS, ids=lambda config: "x".join(map(str, config.values())))
def test_configurations(kernel: str, config: Mapping[str, int]) -> None:
    ragged = BatchProblem(131, 133, 21, 0.5, -1.0, batch=3, stride_b=0)
    cases = [ragged.with_layout(layout) for layout in ("nn", "nt", "tn", "tt")]
    cases += [BatchProblem(256, 128, 64, batch=2), BatchProblem(5, 3, 2, batch=9)]
    cases += [replace(cases[0], lda=41, ldb=150, ldc=3 * 133 + 5, stride_a=7, stride_c=133)]
    report = check_kernel(find_kernel(kernel), open_device("emulated:sm_90"), OP, config=config, cases=cases)
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("rows", [1, 2, 4, 8])
@pytest.mark.parametrize("warps", [4, 8])
def test_configurations_of_rows(rows: int, warps: int) -> None:
    config = {"ROWS": rows, "WARPS": warps, "LINES": 4 if rows == 8 else 16 if rows == 2 else 8}
    ragged = BatchProblem(rows, 261, 135, 0.5, -1.0, batch=3)
    wide = [
        ragged,
        replace(ragged, m=3, n=256, k=128),
        replace(ragged, m=133, n=rows),
        replace(ragged, m=64, n=2, k=64),
    ]
    cases = [problem.with_layout(layout) for problem in wide for layout in ("nn", "nt", "tn", "tt")]
    report = check_kernel(find_kernel("batched_rows"), open_device("emulated:sm_90"), OP, config=config, cases=cases)
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("kernel", ["batched", "grouped"])
def test_all_tiles_have_naive_s_bits(kernel: str) -> None:
    one = GemmProblem(37, 70, 203, 0.5, -1.5)
    contents = GemmOp().fill(one, np.random.default_rng(5))
    expected = bits("naive", GemmOp(), one, contents)
    for config in (*CONFIGURATIONS[:2], CONFIGURATIONS[-1]):
        found = bits(kernel, OP, BatchProblem(37, 70, 203, 0.5, -1.5), contents, config)
        np.testing.assert_array_equal(found, expected)


def bits(
    kernel: str, op: Op, problem: Problem, contents: Mapping[str, Any], config: Mapping[str, int] | None = None
) -> Any:  # fmt: skip
    out = contents["c"].reshape(-1).copy()
    bound = bind(find_kernel(kernel), open_device("emulated:sm_90"), op, problem, contents, config=config)
    bound.run()
    bound.download("c", out)
    return out.view(np.uint32)
