"""What warps wait for: the list of reasons, their costs in a profile, and what follows."""

from __future__ import annotations

import re

import pytest

from gemmlab.analysis.stall_findings import (
    STALL_ADVICE,
    issue_percent,
    multiprocessors,
    stall_facts,
    stall_findings,
    waiting,
)
from gemmlab.analysis.stall_reasons import STALLS
from gemmlab.kernels.catalog import all_kernels, find_kernel, ladder
from gemmlab.observe.profile import Profile
from gemmlab.observe.profile_reader import load_profiles
from support.paths import RESULTS

H200 = RESULTS / "h200" / "ncu.json"
ISSUE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
# As the Chinese profiling notes list them.
REASONS = (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instructions", "not_selected", "selected",
    "short_scoreboard", "sleeping", "tex_throttle", "wait", "warpgroup_arrive",
)  # fmt: skip


def profile(metrics: dict[str, float], contestant: str = "kernel:naive") -> Profile:
    return Profile(contestant, "8x8x8", ("k",), {}, {}, metrics)


def cycles(**values: float) -> dict[str, float]:
    return {f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio": value for name, value in values.items()}


def samples(suffix: str = "", **values: float) -> dict[str, float]:
    return {f"smsp__pcsamp_warps_issue_stalled_{name}{suffix}": value for name, value in values.items()}


def test_all_nineteen_reasons_are_there_and_complete() -> None:
    assert tuple(stall.key for stall in STALLS) == REASONS
    known = {kernel.id for kernel in all_kernels()}
    for stall in STALLS:
        for text in (stall.meaning, stall.cause, stall.attempt):
            assert re.fullmatch(r"[A-Z`].{10,}\.", text), (stall.key, text)
            assert not re.search(r"[{}]", text)
        assert set(stall.rungs) <= known
        assert stall.metric == f"smsp__pcsamp_warps_issue_stalled_{stall.key}"
        assert stall.not_issued == f"{stall.metric}_not_issued"
    assert len({stall.meaning for stall in STALLS}) == len(STALLS)


def test_the_cycles_metrics_are_those_of_the_recorded_profile() -> None:
    recorded = load_profiles(H200).profiles[0].metrics
    assert {stall.cycles for stall in STALLS} <= set(recorded)


def test_idle_cycles_are_shared_out_among_what_waits() -> None:
    found = waiting(profile({ISSUE: 60.0, **cycles(wait=1.0, long_scoreboard=3.0, selected=1.0, not_selected=5.0)}))
    by_key = {one.stall.key: one for one in found}
    assert [one.stall.key for one in found] == ["long_scoreboard", "wait", "not_selected", "selected"]
    assert by_key["long_scoreboard"].cost == pytest.approx(30)
    assert by_key["wait"].cost == pytest.approx(10)
    assert by_key["long_scoreboard"].share == pytest.approx(0.3)
    assert by_key["not_selected"].cost == 0
    assert by_key["wait"].samples is None


def test_samples_without_an_issue_decide_where_there_are_any() -> None:
    measured = {
        ISSUE: 50.0, **cycles(wait=9.0, barrier=1.0, selected=1.0), **samples(wait=90, barrier=10, selected=10),
        **samples("_not_issued", wait=5, barrier=15),
    }  # fmt: skip
    first, second, _ = waiting(profile(measured))
    assert (first.stall.key, first.samples, first.not_issued) == ("barrier", 10, 15)
    assert first.cost == pytest.approx(37.5)
    assert second.stall.key == "wait"
    assert second.cost == pytest.approx(12.5)


def test_how_often_something_is_issued_by_whatever_was_measured() -> None:
    assert issue_percent(profile({"smsp__issue_active.avg.per_cycle_active": 0.25})) == 25
    by_warps = {"smsp__warps_active.avg.per_cycle_active": 2.0, **cycles(wait=3.0, selected=1.0)}
    assert issue_percent(profile(by_warps)) == 50
    assert issue_percent(profile(cycles(wait=3.0))) is None
    assert waiting(profile(cycles(wait=3.0)))[0].cost is None
    assert stall_findings(profile(cycles(wait=3.0))) == ()
    assert waiting(profile({})) == ()


def test_a_state_that_is_not_in_the_list_is_shown_and_gets_no_advice() -> None:
    measured = profile({ISSUE: 50.0, **cycles(brand_new=3.0, wait=1.0, selected=1.0)})
    first, second, _ = waiting(measured)
    assert (first.stall.name, second.stall.key) == ("brand new", "wait")
    assert first.cost == pytest.approx(37.5)
    assert [found.key for found in stall_findings(measured)] == ["stall: wait"]


def test_findings_have_figures_and_a_rung_above_the_kernel() -> None:
    measured = profile({ISSUE: 40.0, **cycles(mio_throttle=5.0, barrier=0.05, selected=1.0)})
    (found,) = stall_findings(measured, find_kernel("block_tile"), ladder("gemm", "cuda"))
    assert found.key == "stall: mio throttle"
    assert found.weight == pytest.approx(60 * 5 / 5.05)
    assert found.text.startswith("83 % of a warp's time is `mio throttle`, to which about 59 % of the cycles are lost.")
    assert found.figures == {"mio_throttle_cost": pytest.approx(found.weight)}
    assert found.rung == "thread_tile_2d"
    (above,) = stall_findings(measured, find_kernel("thread_tile_2d"), ladder("gemm", "cuda"))
    assert above.rung == "register_stage"
    (alone,) = stall_findings(measured)
    assert alone.rung == ""
    (mine,) = stall_findings(measured, None, ladder("gemm", "cuda"))
    assert mine.rung == "thread_tile_2d"
    assert stall_findings(profile(dict(measured.metrics), "cublas")) == ()


def test_a_kernel_that_always_issues_has_nothing_to_win() -> None:
    assert stall_findings(profile({ISSUE: 100.0, **cycles(wait=5.0, selected=1.0)})) == ()


def test_every_advice_reads_well() -> None:
    assert len(STALL_ADVICE) == 17
    facts = stall_facts(profile({}))
    for row in STALL_ADVICE:
        assert "0 % of a warp's time is `" in row.text.format(**facts)


def test_the_recorded_ladder_is_told_what_it_was_climbed_for() -> None:
    found = load_profiles(H200)
    first = {}
    for one in found.profiles:
        if one.size.startswith("2048") and not one.is_library:
            findings = stall_findings(one, find_kernel(one.name), ladder("gemm", "cuda"))
            first[one.name] = (findings[0].key, findings[0].rung)
    assert first["naive"] == ("stall: lg throttle", "block_tile")
    assert first["block_tile"] == ("stall: mio throttle", "thread_tile_2d")
    assert first["vector_load"] == ("stall: long scoreboard", "double_buffer")
    assert first["register_stage"] == ("stall: long scoreboard", "double_buffer")
    assert first["double_buffer"][0] == "stall: short scoreboard"


def test_a_gpu_that_has_too_few_blocks_is_told_first() -> None:
    found = load_profiles(H200)
    few = {one.size[:3]: stall_findings(one)[0] for one in found.profiles if one.name == "vector_load"}
    assert few["512"].key == "few blocks"
    assert few["512"].text == "16 blocks for 132 SMs: 88 % of the GPU has nothing to do."
    assert few["204"].key == few["409"].key == "stall: long scoreboard"
    assert {multiprocessors(one) for one in found.profiles if one.precision == "float32"} == {132}


def test_where_waves_are_rounded_or_missing_nobody_knows_the_multiprocessors() -> None:
    launch = {"launch__grid_size": 16.0, "launch__occupancy_limit_warps": 2.0, "launch__occupancy_limit_blocks": 32.0}
    assert multiprocessors(profile({**launch, "launch__waves_per_multiprocessor": 16 / 264})) == 132
    assert multiprocessors(profile({**launch, "launch__waves_per_multiprocessor": 0.06})) == 0
    assert multiprocessors(profile(launch)) == 0
