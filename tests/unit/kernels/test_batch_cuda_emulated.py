"""Kernels of batches, run from their machine code: right at the edges, and counted as their files say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.batch import BatchOp
from gemmlab.ops.batch_problem import BatchProblem
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
def test_the_whole_contract(arch: str) -> None:
    report = check_kernel(find_kernel("batched"), open_device(f"emulated:{arch}"), OP)
    assert report.passed, report.explain()
    assert report.cases > 100


@pytest.mark.sampled(2)
@pytest.mark.parametrize("config", CONFIGURATIONS, ids=lambda config: "x".join(map(str, config.values())))
def test_configurations(config: Mapping[str, int]) -> None:
    ragged = BatchProblem(131, 133, 21, 0.5, -1.0, batch=3, stride_b=0)
    cases = [ragged.with_layout(layout) for layout in ("nn", "nt", "tn", "tt")]
    cases += [BatchProblem(256, 128, 64, batch=2), BatchProblem(5, 3, 2, batch=9)]
    cases += [replace(cases[0], lda=41, ldb=150, ldc=3 * 133 + 5, stride_a=7, stride_c=133)]
    report = check_kernel(find_kernel("batched"), open_device("emulated:sm_90"), OP, config=config, cases=cases)
    assert report.passed, report.explain()
