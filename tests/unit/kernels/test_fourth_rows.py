"""TF32 for rows off 16 bytes, by tensor maps over every fourth row."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from gemmlab.core.precision import TF32, TF32_ROUNDOFF
from gemmlab.devices.device import Buffer
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.dispatch.choice import choose
from gemmlab.dispatch.measurements import shipped_table
from gemmlab.dispatch.waves import gpu_model
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.toolchain.build_cuda import build
from gemmlab.verify.check import check_kernel
from gemmlab.verify.expectations import judge_claims
from support.cuda_source import needs_compiler

OP = GemmOp()
KERNEL = find_kernel("fourth_rows")
RAGGED = (
    GemmProblem(150, 141, 37),
    GemmProblem(133, 75, 131, lda=134, ldb=77, ldc=79, alpha=0.5, beta=2.0),
    GemmProblem(7, 5, 3, lda=5, ldb=6, ldc=9, alpha=-1.0, beta=1.0),
    GemmProblem(1, 3, 2),
    GemmProblem(64, 63, 0, beta=2.0),
    GemmProblem(64, 63, 65, alpha=0.0, beta=1.0),
    GemmProblem(68, 64, 64, lda=64, ldb=66),
)
"""Rows 1, 2, 3 and 0 floats off 16 bytes, classes without a row, tiles that hang over, scalars, empty sums."""


def device() -> EmulatedDevice:
    return EmulatedDevice("sm_90a")


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "config",
    [
        {"BY": 256, "BLOCKS": 2},
        {"BY": 128, "GROUP": 1, "BLOCKS": 4},
        {"BY": 64, "X_BLOCKS": 1, "Y_BLOCKS": 2, "BLOCKS": 2},
        {"BY": 64, "X_BLOCKS": 1, "Y_BLOCKS": 1, "BLOCKS": 1},
        {"BY": 128, "X_BLOCKS": 2, "Y_BLOCKS": 2, "BLOCKS": 4},
    ],
    ids=str,
)
def test_it_is_right_at_any_distance_of_rows_without_a_hazard(config: Mapping[str, int]) -> None:
    report = check_kernel(KERNEL, device(), OP, config=config, cases=RAGGED)
    assert report.passed, report.explain()
    assert report.cases == len(RAGGED)


@needs_compiler
def test_what_lies_between_the_rows_does_not_reach_the_result() -> None:
    """Copies bring up to three words that lie before a row: infinities and NaN here."""
    problem = GemmProblem(21, 18, 35, lda=38, ldb=19)
    at, random = device(), np.random.default_rng(7)
    a, b = (random.standard_normal(shape, np.float32) for shape in ((21, 35), (35, 18)))
    buffers: dict[str, Buffer] = {"c": at.upload(np.full(21 * 18, np.nan, np.float32))}
    for name, matrix, ld, filler in (("a", a, 38, np.inf), ("b", b, 19, np.nan)):
        memory = np.full((len(matrix), ld), filler, np.float32)
        memory[:, : matrix.shape[1]] = matrix
        buffers[name] = at.upload(memory.reshape(-1))
    bound = place(KERNEL, at, {"BY": 64}).bind(OP, problem, buffers)
    bound.run()
    found = np.empty(21 * 18, np.float32)
    bound.download("c", found)
    exact = a.astype(np.float64) @ b
    limit = np.abs(a).astype(np.float64) @ np.abs(b) * 2.01 * TF32_ROUNDOFF
    assert np.all(np.abs(found.reshape(21, 18) - exact) <= limit)


@pytest.mark.in_turns(20)
@needs_compiler
def test_its_counters_show_what_its_file_says() -> None:
    verdicts = list(judge_claims(KERNEL, device(), OP))
    assert len(verdicts) >= 3
    assert [one.broken for one in verdicts if one.broken] == []


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.sampled(1)
@pytest.mark.parametrize("rows", [64, 128, 256])
def test_no_product_waits_for_the_one_before(rows: int) -> None:
    for x, y in ((1, 1), (1, 2), (2, 1), (2, 2)):
        instance = KERNEL.configure({"BY": rows, "X_BLOCKS": x, "Y_BLOCKS": y})
        made = build(KERNEL.program(instance, "sm_90a"))
        assert made.resources["spill_loads"] <= 8, instance
        assert "serializ" not in made.texts["log"], instance


@pytest.mark.parametrize(
    ("problem", "kernel"),
    [
        (GemmProblem(4095, 4095, 4095), "fourth_rows"),
        (GemmProblem(2001, 3003, 1999), "fourth_rows"),
        (GemmProblem(4100, 4100, 4100), "multicast"),
        (GemmProblem(4096, 4096, 4096), "persistent"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.label,
)
def test_how_rows_lie_decides(problem: GemmProblem, kernel: str) -> None:
    assert choose(problem, gpu_model("H200"), shipped_table(), precision=TF32).kernel == kernel


def test_operands_off_16_bytes_get_another_kernel() -> None:
    found = choose(GemmProblem(4095, 4095, 4095), gpu_model("H200"), shipped_table(), precision=TF32, aligned=False)
    assert found.kernel == "tf32_images"
