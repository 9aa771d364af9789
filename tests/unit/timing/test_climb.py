from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from gemmlab.core.errors import UsageError, WrongResultError
from gemmlab.core.program import Launch
from gemmlab.core.records import Method, Record, Result, Sample, from_json, to_json
from gemmlab.devices.device import Loaded
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.plots.chart import render, specification
from gemmlab.plots.ladder import climb_chart
from gemmlab.results.climb_rows import climb_rows, digits, peaks, peer_names, percent, times
from gemmlab.timing.bench_plan import Plan
from gemmlab.timing.climb import FEWEST_ROUNDS, MOST_ROUNDS, Climb, Step, run_climb
from gemmlab.timing.peers import PROBE, Spec
from support.fake_device import FakeDevice, Gemm, make_kernel, right

OP = GemmOp()
SPEEDS = {"slow": 0.01, "quick": 40.0, "both": 80.0, "gemmlab": 42.0, "probe": 50.0, "rival": 30.0, "other": 60.0}
"""GFLOP/s of each contestant on one thread."""


@pytest.fixture(autouse=True)
def _two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here runs on them."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)


@dataclass
class TimedDevice(FakeDevice):
    """Takes as long as `SPEEDS` says, on paper."""

    timed: list[tuple[str, int]] = field(default_factory=list)

    def time(self, loaded: Loaded, launch: Launch, repeats: int, inner: int = 1) -> list[float]:
        del inner
        m, n, k = (int(value) for value in launch.args[:3])
        self.timed.append((loaded.artifact.kernel, m))
        return [2 * m * n * k / (SPEEDS[loaded.artifact.kernel] * 1e3)] * repeats


def fake_bench(plan: Plan, *, device: Any, progress: Callable[[Any], None]) -> Record:
    """A record as `run_bench` makes it, from `SPEEDS`."""
    del progress
    results = []
    for threads in plan.threads:
        for problem in plan.problems:
            for spec in (*plan.contestants, PROBE):
                if spec is not PROBE and not plan.only(spec.name, problem):
                    results.append(result(plan, spec, problem, threads, ()))
                    continue
                time_us = OP.flops(problem) / (SPEEDS[spec.name.removeprefix("kernel:")] * threads * 1e3)
                samples = tuple(Sample(0, r, time_us, 1, 1, (time_us,)) for r in range(plan.rounds))
                results.append(result(plan, spec, problem, threads, samples))
    return Record("climb", "gemm", {"cpu": "A CPU", "cpus": 2}, device, Method(1, 1, 1, 1, 1, 1, True, 0), (*results,))


def result(plan: Plan, spec: Spec, problem: Any, threads: int, samples: tuple[Sample, ...]) -> Result:
    facts = {"role": spec.role, "library": f"lib {spec.name}", "version": "1.2", "core_type": "Zen"}
    notes = () if samples else ("left out",)
    return Result(
        spec.name, problem.to_json(), problem.label, plan.op.flops(problem), threads, facts, samples, True, 0.1, notes
    )


def ladder(device: FakeDevice) -> list[Kernel]:
    return [
        replace(make_kernel("slow", device, right), step=10, idea="It is the first."),
        replace(make_kernel("quick", device, right), step=20, idea="It is quick."),
        replace(make_kernel("both", device, right, threaded=True), step=30, idea="It has two threads."),
    ]


def climb(threads: int = 2, sizes: str = "8,16,32,64", **more: Any) -> Climb:
    device = TimedDevice()
    peers = [Spec("rival", "library", path="/rival"), Spec("other", "library", path="/other")]
    return Climb(OP, device, more.pop("kernels", None) or ladder(device), peers, threads, sizes, **more)


@pytest.mark.in_turns(20)
def test_rows_are_the_ladder_then_the_library_call_and_the_peers_by_thread_count() -> None:
    record, reports = run_climb(climb(), bench=fake_bench)
    assert all(report.passed for report in reports)
    rows = climb_rows(record)
    assert [(row.name, row.role, row.threads) for row in rows] == [
        ("slow", "rung", 1), ("quick", "rung", 1), ("both", "rung", 2),
        ("gemmlab.gemm", "library call", 1), ("rival", "peer", 1), ("other", "peer", 1),
        ("gemmlab.gemm", "library call", 2), ("rival", "peer", 2), ("other", "peer", 2),
    ]  # fmt: skip
    assert peer_names(rows) == ["rival", "other"]
    by_name = {row.name: row for row in rows[:3]}
    assert by_name["quick"].gflops == pytest.approx(40)
    assert by_name["quick"].to_first == pytest.approx(4000)
    assert by_name["quick"].to_peers == pytest.approx({"rival": 40 / 30, "other": 40 / 60})
    assert by_name["quick"].peak_share == pytest.approx(0.8)
    assert by_name["both"].to_peers == pytest.approx({"rival": 80 / 30, "other": 80 / 60})
    assert by_name["both"].gflops == pytest.approx(160)
    assert by_name["slow"].idea == "It is the first."
    assert rows[-1].about == "lib other 1.2, Zen"
    assert peaks(record) == pytest.approx({1: 50.0, 2: 100.0})


@pytest.mark.slow
def test_each_rung_is_timed_at_the_largest_size_it_finishes_in_time() -> None:
    # 0.01 GFLOP/s: 64 takes 52 ms, which is too long for a quick look (50 ms); 32 takes 6.6 ms.
    record, _ = run_climb(climb(quick=True), bench=fake_bench)
    sizes = {row.name: row.size for row in climb_rows(record) if row.role == "rung"}
    assert sizes == {"slow": "32x32x32", "quick": "64x64x64", "both": "64x64x64"}
    assert {row.size for row in climb_rows(record) if row.role == "library call"} == {"64x64x64"}
    record, _ = run_climb(climb(), bench=fake_bench)
    assert {row.size for row in climb_rows(record)} == {"64x64x64"}


@pytest.mark.in_turns(20)
def test_a_slow_rung_is_never_tried_where_it_would_take_long() -> None:
    setup = climb(sizes="8,16,512", quick=True)
    run_climb(setup, bench=fake_bench)
    assert isinstance(setup.device, TimedDevice)
    assert ("slow", 512) not in setup.device.timed
    assert ("slow", 16) in setup.device.timed


@pytest.mark.in_turns(20)
def test_one_thread_makes_one_run() -> None:
    record, _ = run_climb(climb(threads=1), bench=fake_bench)
    assert {result.threads for result in record.results} == {1}
    assert [row.role for row in climb_rows(record)] == ["rung"] * 3 + ["library call", "peer", "peer"]


@pytest.mark.slow
def test_rounds_follow_the_time_there_is() -> None:
    seen: list[int] = []

    def noting(plan: Plan, **more: Any) -> Record:
        seen.append(plan.rounds)
        return fake_bench(plan, **more)

    run_climb(climb(sizes="8"), bench=noting)
    run_climb(climb(sizes="8", quick=True), bench=noting)
    assert seen == [MOST_ROUNDS, MOST_ROUNDS, FEWEST_ROUNDS, FEWEST_ROUNDS]


@pytest.mark.in_turns(20)
def test_a_wrong_rung_is_reported_and_not_timed() -> None:
    device = TimedDevice()

    def wrong(call: Gemm) -> None:
        right(call)
        if call.m and call.n:
            call.c[-1, -1] += 1

    rungs = [*ladder(device)[:2], replace(make_kernel("both", device, wrong), step=30)]
    steps: list[Step] = []
    setup = replace(climb(), device=device, kernels=rungs, progress=steps.append)
    record, reports = run_climb(setup, bench=fake_bench)
    assert [report.passed for report in reports] == [True, True, False]
    assert "both" not in [row.name for row in climb_rows(record)]
    assert "both is wrong and was not timed" in record.notes
    assert [step for step in steps if step.final and "WRONG" in step.text and step.rung == "both"]
    with pytest.raises(WrongResultError, match="both"):
        run_climb(replace(setup, kernels=rungs[2:]), bench=fake_bench)


@pytest.mark.in_turns(20)
def test_record_survives_json_and_draws_a_chart() -> None:
    record, _ = run_climb(climb(), bench=fake_bench)
    again = from_json(to_json(record))
    assert climb_rows(again) == climb_rows(record)
    svg = render(specification(climb_chart(again)), ".svg").decode()
    for row in climb_rows(again):
        assert f"{digits(row.gflops)} ({percent(row.peak_share)})" in svg
    for wanted in ("slow", "quick", "both", "gemmlab.gemm", "rival", "FMA peak 100", "A CPU"):
        assert wanted in svg


def test_nothing_to_climb_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no ladder"):
        run_climb(replace(climb(), kernels=[]), bench=fake_bench)
    with pytest.raises(UsageError, match="not empty"):
        run_climb(climb(sizes="0"), bench=fake_bench)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.00012, "0.0001"),
        (0.02, "0.0200"),
        (0.5, "0.500"),
        (3.14159, "3.14"),
        (42.0, "42.0"),
        (99.94, "99.9"),
        (99.96, "100"),
        (1234.5, "1234"),
    ],
)
def test_digits(value: float, text: str) -> None:
    assert digits(value) == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.0149, "0.015"), (0.98, "0.98"), (1.0, "1.00"), (12.34, "12.3"), (345.6, "346")]
)
def test_times(ratio: float, text: str) -> None:
    assert times(ratio) == text
