"""`tf32_split_k`: blocks that share the k of a tile, on Hopper's tensor cores."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest

from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.toolchain.build_cuda import build
from gemmlab.verify.check import check_kernel
from gemmlab.verify.expectations import judge_claims
from support.cuda_source import needs_compiler
from support.rows_on_vectors import laid_out

NAME = "tf32_split_k"
OP = GemmOp()
RAGGED = (
    GemmProblem(150, 140, 300),
    GemmProblem(133, 76, 900, ldc=79, alpha=0.5, beta=2.0),
    GemmProblem(132, 72, 65, ldc=75, alpha=-1.0, beta=1.0),
    GemmProblem(4, 8, 1100, beta=1.0),
    GemmProblem(64, 64, 0, beta=2.0),
    GemmProblem(64, 64, 256, alpha=0.0, beta=1.0),
)
"""Tiles that hang over, parts of unequal length, rows longer than needed, scalars, empty sums."""


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    "config", [{"BY": 64, "SPLITS": 3}, {"BY": 128, "SPLITS": 5, "FAN": 4}, {"BY": 64, "SPLITS": 1}]
)
def test_it_is_right_in_all_layouts_without_a_hazard(config: Mapping[str, int]) -> None:
    cases = [laid_out(problem, layout) for problem, layout in product(RAGGED, ("nn", "nt", "tt"))]
    report = check_kernel(find_kernel(NAME), EmulatedDevice("sm_90a"), OP, config=config, cases=cases)
    assert report.passed, report.explain()
    assert report.cases == len(cases)


@pytest.mark.in_turns(20)
@needs_compiler
def test_its_counters_show_what_its_file_says() -> None:
    verdicts = list(judge_claims(find_kernel(NAME), EmulatedDevice("sm_90a"), OP))
    assert len(verdicts) >= 8
    assert [one.broken for one in verdicts if one.broken] == []


@pytest.mark.in_turns(20)
@needs_compiler
def test_no_configuration_spills_or_waits_after_each_product() -> None:
    kernel = find_kernel(NAME)
    for config in kernel.configurations():
        if config["SPLITS"] == kernel.params["SPLITS"]:
            for instance in kernel.instances(config):
                made = build(kernel.program(instance, "sm_90a"))
                assert (made.resources["spill_loads"], made.resources["local_bytes"]) == (0, 0), instance
                assert "serializ" not in made.texts["log"], instance


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_second_run_has_the_same_bits() -> None:
    """The first run leaves its tickets at zero and its parts in the workspace."""
    problem, at = GemmProblem(140, 72, 1200), EmulatedDevice("sm_90a")
    arrays = OP.fill(problem, np.random.default_rng(0))
    buffers = {name: at.upload(np.ascontiguousarray(values).reshape(-1)) for name, values in arrays.items()}
    bound = place(find_kernel(NAME), at, {"BY": 64, "SPLITS": 11}).bind(OP, problem, buffers)
    results = []
    for _ in range(2):
        bound.run()
        out = np.empty(140 * 72, np.float32)
        bound.download("c", out)
        results.append(out)
    assert np.array_equal(results[0].view(np.uint32), results[1].view(np.uint32))
