"""Threads of a branch on two predicates: by instruction those of the first, in the hardware's total those of both."""

from __future__ import annotations

import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

import profiled
from launch_probes import rungs
from probes import BRANCHES, branches
from recorded_rungs import recorded

from gemmlab.devices.emulated import ARCHITECTURES, EmulatedDevice
from support.cuda_calls import CudaFile

ON, THREADS = "smsp__thread_inst_executed_pred_on.sum", "smsp__thread_inst_executed.sum"


@pytest.mark.in_turns(20)
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


@pytest.mark.slow
@pytest.mark.parametrize("rung", ["double_buffer", "warp_tile"])
def test_a_rung_with_such_branches_counts_as_ncu_counts(rung: str) -> None:
    one, bound = recorded(rung)
    counters = bound.observe().counters
    assert any("BRA P" in site.text and site.executed for site in counters.sites)
    assert counters.totals()[ON].value == one.metrics[ON]
    assert counters.totals()["thread_inst_executed_true"].value == one.counts["thread_inst_executed_true"]
    assert one.metrics[ON] < one.counts["thread_inst_executed_true"]


@pytest.mark.skipif(not profiled.available(), reason="no GPU has profiled the probes yet")
def test_a_gpu_counts_the_probes_so() -> None:
    missing = {}
    for probe in branches():
        by_row = sum(row.values["thread_inst_executed_true"] for row in profiled.rows(probe.name))
        missing[probe.name] = by_row - profiled.totals(probe.name)[ON]
        (branch,) = (row for row in profiled.rows(probe.name) if "BRA P" in row.text)
        assert branch.values["thread_inst_executed_true"] == 20
    assert missing == {"two_predicates_hold": 0, "two_predicates_fail": 20}


@pytest.mark.in_turns(20)
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
