"""The naive kernel as a yardstick: how it is timed, what the summary and the tables make of it."""

from __future__ import annotations

from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, cast
from unittest.mock import patch

import pytest

from gemmlab.cli import console
from gemmlab.cli.bench_tables import print_tables
from gemmlab.core.records import Record, Result, Sample, from_json, to_json
from gemmlab.devices.device_name import CPU
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.results.summary import BASELINE, FASTEST, summarise
from gemmlab.timing.arena import Arena
from gemmlab.timing.baseline import TURNS, baseline_spec, sizes_for_baseline, time_baseline
from gemmlab.timing.bench import run_bench
from gemmlab.timing.bench_plan import Plan
from gemmlab.timing.families import Timing
from gemmlab.timing.peers import Spec
from gemmlab.timing.turns import Crew

OP = GemmOp()


def timed(name: str, role: str, extent: int, gflops: float, threads: int = 1) -> Result:
    flops = 2 * extent**3
    time_us = flops / (gflops * 1e3)
    samples = tuple(Sample(0, index, time_us, 1, 1, (time_us,)) for index in range(3))
    label = f"{extent}x{extent}x{extent}"
    return Result(name, {}, label, flops, threads, {"role": role}, samples, True, 0.1, (), 7.5)


def record(*results: Result) -> Record:
    return Record("bench", "gemm", {}, {}, None, results)


def test_rows_are_compared_with_naive_at_their_size_or_else_at_its_largest() -> None:
    found = summarise(
        record(
            timed("baseline:slow", BASELINE, 64, 2.0),
            timed("baseline:slow", BASELINE, 128, 4.0),
            timed("gemmlab", "library call", 64, 200.0),
            timed("gemmlab", "library call", 512, 400.0, threads=2),
            timed("rival", "peer", 512, 100.0, threads=2),
            timed("probe", "peak", 512, 500.0, threads=2),
        )
    )
    assert {(row.contestant, row.label): row.naive_at for row in found.rows} == {
        ("baseline:slow", "64x64x64"): "64x64x64",
        ("baseline:slow", "128x128x128"): "128x128x128",
        ("gemmlab", "64x64x64"): "64x64x64",
        ("gemmlab", "512x512x512"): "128x128x128",
        ("rival", "512x512x512"): "128x128x128",
    }
    assert [row.to_naive for row in found.rows] == pytest.approx([1.0, 100.0, 1.0, 100.0, 25.0])
    ours = found.rows[-2]
    assert (ours.flops, ours.reference_us) == (2 * 512**3, 7.5)
    assert ours.ratios[FASTEST].value == pytest.approx(4.0)
    assert found.to_json()["rows"][-2]["to_naive"] == pytest.approx(100.0)


def test_without_a_baseline_there_is_no_ratio() -> None:
    (row,) = summarise(record(timed("gemmlab", "library call", 64, 200.0))).rows
    assert (row.to_naive, row.naive_at) == (None, None)


def test_the_time_of_the_reference_survives_json() -> None:
    kept = record(timed("gemmlab", "library call", 64, 200.0))
    assert from_json(to_json(kept)) == kept
    old = to_json(kept)
    del old["results"][0]["reference_us"]
    assert from_json(old).results[0].reference_us is None


@dataclass
class FakeCrew:
    """A crew whose one contestant does `gflops`, and is lost in the turn that `dies_at` names."""

    problems: list[GemmProblem]
    arena: Arena
    gflops: float
    dies_at: int = -1
    op: GemmOp = field(default_factory=GemmOp)
    prepared: list[int] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=lambda: {"baseline:slow": {"library": "mine"}})
    lost: dict[str, str] = field(default_factory=dict)

    def join(self, spec: Spec) -> bool:
        return spec.name not in self.lost

    def can(self, name: str, index: int) -> bool:
        return name not in self.lost and self.problems[index].m != 24

    def prepare(self, name: str, index: int) -> bool:
        self.prepared.append(index)
        return name not in self.lost

    def run(self, name: str, index: int) -> bool:
        contents = self.arena.fill(index)
        self.arena.placed[index]["c"].matrix(self.arena.memory)[...] = contents["a"] @ contents["b"]
        return name not in self.lost

    def turn(self, name: str, index: int) -> dict[str, Any] | None:
        if self.problems[index].m == self.dies_at:
            self.lost[name] = "baseline:slow died"
            return None
        time_us = self.op.flops(self.problems[index]) / (self.gflops * 1e3)
        return {"time_us": time_us, "calls": 1, "inner": 1, "raw_us": [time_us]}


def time_with(crew: FakeCrew, *, verify: bool = True) -> tuple[list[Result], list[str]]:
    return time_baseline(cast("Crew", crew), Spec("baseline:slow", "kernel", kernel="slow"), verify=verify)


def test_a_baseline_is_timed_up_to_the_size_that_takes_too_long() -> None:
    # 64 takes 0.035 s at 0.015 GFLOP/s, 128 would take 0.28 s; 24 it cannot do.
    problems = [GemmProblem(n, n, n) for n in (128, 16, 64, 24)]
    with Arena(OP, problems, seed=0) as arena:
        crew = FakeCrew(problems, arena, 0.015)
        results, failures = time_with(crew)
        assert ([result.label for result in results], failures) == (["16x16x16", "64x64x64"], [])
        assert [result.verified for result in results] == [True, None]
        assert all(len(result.samples) == TURNS and result.threads == 1 for result in results)
        assert results[0].facts == {"role": BASELINE, "library": "mine"}
        assert crew.prepared == [1, 2]
        assert time_with(FakeCrew(problems, arena, 0.015), verify=False)[0][0].verified is None


def test_a_baseline_that_dies_leaves_what_it_did_and_says_so() -> None:
    problems = [GemmProblem(n, n, n) for n in (8, 16)]
    with Arena(OP, problems, seed=0) as arena:
        results, failures = time_with(FakeCrew(problems, arena, 1.0, dies_at=16))
        assert ([result.label for result in results], failures) == (["8x8x8"], ["baseline:slow died"])
        gone = FakeCrew(problems, arena, 1.0, lost={"baseline:slow": "does not start"})
        assert time_with(gone) == ([], ["does not start"])


def test_a_small_size_is_placed_beside_large_ones_only() -> None:
    assert [p.label for p in sizes_for_baseline(OP, OP.parse_sizes("512,1024"), "cpu")] == ["256x256x256"]
    assert sizes_for_baseline(OP, OP.parse_sizes("512,64"), "cpu") == []


def test_the_baseline_is_the_lowest_rung() -> None:
    spec = baseline_spec(OP, CPU, "cold")
    assert spec == Spec("baseline:naive_ijk", "kernel", kernel="naive_ijk", mode="cold")


@pytest.mark.in_turns(20)
def test_a_bench_records_the_baseline_the_reference_and_the_clocks() -> None:
    plan = Plan(
        OP, OP.parse_sizes("16,300"), [Spec("numpy", "numpy")], rounds=1, processes=1, probe=False,
        timing=Timing(min_us=50, warm_us=10, timeout_s=60), baseline=baseline_spec(OP, CPU, "warm"),
    )  # fmt: skip
    made = run_bench(plan)
    roles = [(result.label, result.facts["role"]) for result in made.results]
    assert roles[:3] == [("16x16x16", "peer"), ("300x300x300", "peer"), ("16x16x16", BASELINE)]
    assert all((result.reference_us or 0) > 0 for result in made.results if result.facts["role"] == "peer")
    assert all(row.to_naive for row in summarise(made).rows)
    clocks = made.environment["clocks"]
    assert set(clocks) == {"before", "after"}
    assert clocks["before"]["source"] == clocks["after"]["source"]
    assert from_json(to_json(made)) == made


def test_the_tables_fit_a_page() -> None:
    facts = {"library": "OpenBLAS", "version": "0.3.34.481.3", "core_type": "SkylakeX", "thread_runtime": "pthreads"}
    results = []
    for label, flops in (("4096x4096x64", 2 * 4096 * 4096 * 64), ("64x64x64", 2 * 64**3)):
        for name, role, time_us in (
            ("kernel:loop_reorder_ikj", "rung", 123456.7), ("gemmlab", "library call", 2.345),
            ("numpy:best", "peer", 2.5),
            ("openblas:best", "peer", 2.4), ("mkl", "peer", 2.6), ("onednn", "peer", 2.36), ("probe", "peak", 2.0),
            ("baseline:naive_ijk", BASELINE, 99999.9),
        ):  # fmt: skip
            samples = tuple(Sample(0, r, time_us * (1 + r / 50), 1, 1, (time_us,)) for r in range(3))
            results.append(Result(name, {}, label, flops, 2, {**facts, "role": role}, samples, True, 0.1, (), 12345.6))
    made = Record("bench", "gemm", {}, {}, None, tuple(results))
    with patch.object(console, "PIPE_WIDTH", 300), StringIO() as stream, redirect_stdout(stream):
        print_tables(made, summarise(made), None)
        shown = stream.getvalue()
    table = [line.rstrip() for line in shown.split("\n\n")[2].splitlines() if not line.startswith("x ")]
    assert max(map(len, table)) <= 120, shown
    for wanted in ("loop_reorder_ikj", "4096x4096x64", "125.9", "12.3", "PASS", "naive", "1.006*", "64³"):
        assert wanted in shown
