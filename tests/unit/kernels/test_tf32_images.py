"""TF32 for operands that no tensor map describes: any layout, any distance of rows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from gemmlab.core.precision import TF32, TF32_ROUNDOFF
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.dispatch.choice import choose
from gemmlab.dispatch.measurements import shipped_table
from gemmlab.dispatch.waves import gpu_model
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.ops.gemm_problem import LAYOUTS
from gemmlab.toolchain.build_cuda import build
from gemmlab.verify.check import check_kernel
from gemmlab.verify.expectations import judge_claims
from support.cuda_source import needs_compiler

OP = GemmOp()
KERNEL = find_kernel("tf32_images")
RAGGED = (
    GemmProblem(150, 141, 37),
    GemmProblem(133, 75, 131, ldc=79, alpha=0.5, beta=2.0),
    GemmProblem(7, 5, 3, ldc=9, alpha=-1.0, beta=1.0),
    GemmProblem(64, 64, 0, beta=2.0),
    GemmProblem(64, 63, 65, alpha=0.0, beta=1.0),
)
"""Rows off 16 bytes, tiles that hang over, scalars, empty sums."""


def device() -> EmulatedDevice:
    return EmulatedDevice("sm_90a")


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "config", [{"BN": 256, "BLOCKS": 2}, {"BN": 128, "GROUP": 1}, {"BN": 64, "BLOCKS": 1, "SLICE": 128}], ids=str
)
def test_it_is_right_in_all_layouts_without_a_hazard(config: dict[str, int]) -> None:
    cases = [problem.with_layout(layout) for problem, layout in product(RAGGED, LAYOUTS)]
    report = check_kernel(KERNEL, device(), OP, config=config, cases=cases)
    assert report.passed, report.explain()
    assert report.cases == len(cases)


@pytest.mark.in_turns(20)
@needs_compiler
def test_its_counters_show_what_its_file_says() -> None:
    verdicts = list(judge_claims(KERNEL, device(), OP))
    assert len(verdicts) >= 5
    assert [one.broken for one in verdicts if one.broken] == []


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.sampled(1)
@pytest.mark.parametrize("columns", [64, 128, 256])
def test_it_neither_spills_nor_waits_after_each_product(columns: int) -> None:
    for instance in KERNEL.instances(KERNEL.configure({"BN": columns})):
        made = build(KERNEL.program(instance, "sm_90a"))
        assert (made.resources["spill_loads"], made.resources["local_bytes"]) == (0, 0), instance
        assert "serializ" not in made.texts["log"], instance


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("special", [0.0, np.nan, -np.inf])
def test_words_are_rounded_to_nearest_and_what_is_not_finite_travels(special: float) -> None:
    """Cut off, each product would be smaller, and a sum of positive ones wrong by a half of 2^-10 in the mean."""
    problem = GemmProblem(17, 19, 257)
    rng = np.random.default_rng(0)
    a, b = (np.float32(1.0) + rng.random(shape, np.float32) for shape in ((17, 257), (257, 19)))
    a[3, 7] = special or a[3, 7]
    at = device()
    buffers = {"a": a.ravel(), "b": b.ravel(), "c": np.full(17 * 19, np.nan, np.float32)}
    bound = place(KERNEL, at, {"BN": 64}).bind(OP, problem, {name: at.upload(x) for name, x in buffers.items()})
    bound.run()
    out = np.empty(17 * 19, np.float32)
    bound.download("c", out)
    found, wanted = out.reshape(17, 19), a.astype(float) @ b
    rest = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~rest], wanted[~rest])
    error = (found[rest] - wanted[rest]) / wanted[rest]
    assert 0.0 < np.abs(error).max() < 0.25 * TF32_ROUNDOFF
    assert abs(error.mean()) < 0.05 * TF32_ROUNDOFF


@pytest.mark.parametrize(
    "problem",
    [
        GemmProblem(4095, 4095, 4095, trans_b=True),
        GemmProblem(4096, 4096, 4096, trans_a=True),
        GemmProblem(2047, 2047, 2047, trans_a=True, trans_b=True),
    ],
)
def test_it_is_chosen_where_no_tensor_map_is_possible(problem: GemmProblem) -> None:
    found = choose(problem, gpu_model("H200"), shipped_table(), precision=TF32)
    assert found.kernel == KERNEL.id
    assert found.workspace_bytes <= 512 << 20
    assert "persistent" in found.refused
