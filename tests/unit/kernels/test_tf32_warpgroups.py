"""Rungs of TF32 on Hopper's tensor cores: wgmma, tensor copies, a producer, blocks that stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from gemmlab.core.precision import TF32_ROUNDOFF
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.toolchain.build_cuda import build
from gemmlab.verify.check import check_kernel
from gemmlab.verify.expectations import judge_claims
from support.cuda_source import needs_compiler
from support.rows_on_vectors import laid_out

OP = GemmOp()
RUNGS = ("wgmma_tf32", "tma_pipeline", "warp_specialized", "persistent", "multicast")
MAPPED = RUNGS[1:]
LAYOUTS = ("nn", "nt", "tt")
RAGGED = (
    GemmProblem(150, 140, 36),
    GemmProblem(133, 76, 68, ldc=79, alpha=0.5, beta=2.0),
    GemmProblem(132, 72, 33, ldc=75, alpha=-1.0, beta=1.0),
    GemmProblem(4, 8, 100, beta=1.0),
    GemmProblem(64, 64, 0, beta=2.0),
    GemmProblem(64, 64, 64, alpha=0.0, beta=1.0),
)
"""Tiles that hang over, rows longer than needed, scalars, empty sums."""


def device() -> EmulatedDevice:
    return EmulatedDevice("sm_90a")


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("name", RUNGS)
@pytest.mark.parametrize("config", [{"BY": 64, "GROUP": 1}, {"BY": 128}, {"BY": 256}])
def test_it_is_right_in_all_layouts_without_a_hazard(name: str, config: Mapping[str, int]) -> None:
    # Two blocks: each computes several tiles, and the ring goes on from one to the next.
    chosen = {**config, "BLOCKS": 2} if name in RUNGS[3:] else config
    cases = [laid_out(problem, layout) for problem, layout in product(RAGGED, LAYOUTS)]
    report = check_kernel(find_kernel(name), device(), OP, config=chosen, cases=cases)
    assert report.passed, report.explain()
    assert report.cases == len(cases)


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(("x_blocks", "y_blocks"), [(1, 2), (2, 2), (1, 4)])
def test_clusters_of_other_shapes(x_blocks: int, y_blocks: int) -> None:
    config = {"BY": 128, "X_BLOCKS": x_blocks, "Y_BLOCKS": y_blocks, "BLOCKS": 4}
    cases = [laid_out(problem, layout) for problem, layout in product(RAGGED[:3], LAYOUTS)]
    report = check_kernel(find_kernel("multicast"), device(), OP, config=config, cases=cases)
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@needs_compiler
def test_threads_that_copy_take_rows_of_any_alignment() -> None:
    cases = [replace(problem, lda=0, ldb=0) for problem in RAGGED] + [GemmProblem(7, 5, 3), GemmProblem(130, 67, 35)]
    report = check_kernel(find_kernel("wgmma_tf32"), device(), OP, config={"BY": 64}, cases=cases)
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("name", RUNGS)
def test_its_counters_show_what_its_file_says(name: str) -> None:
    verdicts = list(judge_claims(find_kernel(name), device(), OP))
    assert len(verdicts) >= 4
    assert [one.broken for one in verdicts if one.broken] == []


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("name", RUNGS)
def test_no_configuration_spills_or_waits_after_each_product(name: str) -> None:
    """ptxas would say that it serialises wgmma, where registers of products under way are touched."""
    kernel = find_kernel(name)
    for config in kernel.configurations():
        if config["GROUP"] == kernel.params["GROUP"]:
            for instance in kernel.instances(config):
                made = build(kernel.program(instance, "sm_90a"))
                assert (made.resources["spill_loads"], made.resources["local_bytes"]) == (0, 0), instance
                assert "serializ" not in made.texts["log"], instance


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("name", RUNGS)
def test_words_are_rounded_to_nearest(name: str) -> None:
    """Cut off, each product would be smaller, and a sum of positive ones wrong by a half of 2^-10 in the mean."""
    problem = GemmProblem(16, 16, 256)
    values = np.float32(1.0) + np.random.default_rng(0).random((2, 256 * 16), np.float32)
    buffers = {"a": values[0], "b": values[1], "c": np.zeros(256, np.float32)}
    at = device()
    bound = place(find_kernel(name), at, {"BY": 64}).bind(OP, problem, {k: at.upload(v) for k, v in buffers.items()})
    bound.run()
    out = np.empty(256, np.float32)
    bound.download("c", out)
    wanted = values[0].reshape(16, 256).astype(float) @ values[1].reshape(256, 16)
    error = (out.reshape(16, 16) - wanted) / wanted
    assert 0.0 < np.abs(error).max() < 0.25 * TF32_ROUNDOFF
    assert abs(error.mean()) < 0.05 * TF32_ROUNDOFF


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", RUNGS)
def test_what_is_not_finite_travels(name: str, special: float) -> None:
    problem = GemmProblem(20, 24, 40)
    arrays = OP.fill(problem, np.random.default_rng(1))
    a = np.ascontiguousarray(arrays["a"]).reshape(20, 40).copy()
    b = np.ascontiguousarray(arrays["b"]).reshape(40, 24)
    a[3, 7] = special
    at = device()
    flat = {"a": a.reshape(-1), "b": b.reshape(-1), "c": np.zeros(480, np.float32)}
    bound = place(find_kernel(name), at, {"BY": 64}).bind(OP, problem, {k: at.upload(v) for k, v in flat.items()})
    bound.run()
    out = np.empty(480, np.float32)
    bound.download("c", out)
    wanted = a.astype(float) @ b.astype(float)
    assert np.array_equal(np.isnan(out.reshape(20, 24)), np.isnan(wanted))
    assert np.array_equal(np.isinf(out.reshape(20, 24)), np.isinf(wanted))
