"""Threads of a branch on two predicates: by instruction those of the first, in the hardware's total those of both."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

import profiled
from cuda_calls import CudaFile
from launch_probes import rungs
from probes import BRANCHES, branches

from gemmlab.devices.emulated import ARCHITECTURES, EmulatedDevice
from gemmlab.kernels.catalog import find_kernel
from gemmlab.measure.run import bind
from gemmlab.ops.gemm import GemmOp, GemmProblem

PROFILED = Path(__file__).parents[3] / "benchmarks" / "results" / "h200" / "ncu.json"
ON, THREADS = "smsp__thread_inst_executed_pred_on.sum", "smsp__thread_inst_executed.sum"


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_threads_that_the_second_predicate_keeps_are_off_in_the_total_alone(arch: str) -> None:
    file = CudaFile(EmulatedDevice(arch), BRANCHES)
    missing = {}
    for probe in branches():
        counters = file.run(probe.kernel, probe.grid, probe.threads, probe.args).counters
        assert counters is not None
        (site,) = (site for site in counters.sites if "BRA P" in site.text)
        assert (site.executed, site.active_threads, site.predicated_on_threads) == (1, 32, 20)
        by_site = sum(site.predicated_on_threads for site in counters.sites)
        missing[probe.name] = by_site - counters.totals()[ON].value
    assert missing == {"two_predicates_hold": 0, "two_predicates_fail": 20}


@pytest.mark.parametrize("rung", ["double_buffer", "warp_tile"])
def test_a_rung_with_such_branches_counts_as_ncu_counts(rung: str) -> None:
    launches = json.loads(PROFILED.read_text(encoding="utf-8"))["launches"]
    (launch,) = (one for one in launches if one["contestant"] == f"kernel:{rung}" and one["size"] == "512x512x512")
    op, problem, device = GemmOp(), GemmProblem(512, 512, 512), EmulatedDevice("sm_90")
    arrays = {name: array.reshape(-1) for name, array in op.fill(problem, np.random.default_rng(1)).items()}
    bound = bind(find_kernel(rung), device, op, problem, arrays, config=launch["facts"]["config"])
    if bound.loaded.artifact.digest != launch["facts"]["code_sha256"]:
        pytest.skip(f"{rung} has changed since, or {bound.loaded.artifact.compiler} makes other code of it")
    counters = bound.observe().counters
    assert any("BRA P" in site.text and site.executed for site in counters.sites)
    assert counters.totals()[ON].value == launch["metrics"][ON]
    assert counters.totals()["thread_inst_executed_true"].value == launch["counts"]["thread_inst_executed_true"]
    assert launch["metrics"][ON] < launch["counts"]["thread_inst_executed_true"]


@pytest.mark.skipif(not profiled.available(), reason="no GPU has profiled the rungs yet")
def test_totals_of_the_recorded_launches_are_the_hardware_counters() -> None:
    wrong = []
    for name, bound in rungs(EmulatedDevice(profiled.ARCH)):
        hardware, rows = profiled.totals(name), profiled.rows(name)
        # The profiler runs a kernel several times. Where lanes part, they may meet otherwise in another run.
        other_run = hardware[THREADS] - sum(row.values["thread_inst_executed"] for row in rows)
        if bound.observe().counters.totals()[ON].value != hardware[ON] - other_run:
            wrong.append(name)
    assert not wrong
