"""The makers of the table of choices: the fit of the rule's figures, and its regret from recorded times."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gemmlab.dispatch.measurements import Figures, Measurement, Table
from gemmlab.dispatch.waves import estimate, gpu_model
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm_problem import GemmProblem

H200 = gpu_model("H200")
CONFIG = find_kernel("naive").configure({"BM": 32, "BN": 32})
TILES = Measurement(
    "naive", "float32", ("nn",), "sm_75", CONFIG, threads=256, registers=64, smem=0,
    grid=("ceil_div(M, BM) * ceil_div(N, BN)",), figures=Figures(5.0, 0.05, 0.02, ends=20.0, words=0.6),
)  # fmt: skip
EMPTY = Table("H200", "2026-01-01", 3900.0, 4000.0, ())
PROBLEMS = [GemmProblem(m, n, k) for m in (64, 512, 2048) for n in (63, 512, 2047, 2048) for k in (64, 500, 3000)]


@pytest.mark.in_turns(20)
def test_figures_are_found_again_in_the_times_that_they_give(maker: Callable[[str], ModuleType]) -> None:
    times, fit = maker("choices_times"), maker("choices_fit")
    us = {(problem, 1): estimate(TILES, problem, H200, EMPTY).us for problem in PROBLEMS}
    best = {(problem, "float32"): time for (problem, _), time in us.items()}
    base = replace(TILES, figures=Figures(0.0, 0.0, 0.0))
    found = fit.fitted(times.Times(base, us), EMPTY, best)
    assert found.figures.words == pytest.approx(0.6, rel=0.1)
    for (problem, _), time in us.items():
        assert estimate(found, problem, H200, EMPTY).us == pytest.approx(time, rel=0.03)
    # Without a product that is read by words, nothing is known of them.
    fours = {key: time for key, time in us.items() if key[0].n % 4 == 0}
    assert fit.fitted(times.Times(base, fours), EMPTY, best).figures.words == 0.0


@pytest.mark.in_turns(20)
def test_an_estimate_is_not_low_where_the_kernel_is_slow(maker: Callable[[str], ModuleType]) -> None:
    """At most products that are read by words another kernel is the best, at a few this one."""
    times, fit = maker("choices_times"), maker("choices_fit")
    us = {(problem, 1): estimate(TILES, problem, H200, EMPTY).us for problem in PROBLEMS}
    best = {(problem, "float32"): time for (problem, _), time in us.items()}
    slow = [key for key in us if key[0].n == 2047 or (key[0].n == 63 and key[0].m > 64)]
    usual = fit.fitted(times.Times(TILES, us), EMPTY, best)
    us |= {key: 3 * us[key] for key in slow}
    warned = fit.fitted(times.Times(TILES, us), EMPTY, best)
    assert warned.figures.words > usual.figures.words + 0.2
    for problem, _ in slow:
        if problem.k == 3000:
            assert estimate(warned, problem, H200, EMPTY).us > 1.2 * best[problem, "float32"]


def line(size: GemmProblem, us: float, runs: int) -> dict[str, Any]:
    return {
        "size": size.label, "problem": size.to_json(), "kernel": "naive", "config": CONFIG, "us": us, "runs": runs,
        "right": True, "registers": 64, "smem": 0, "threads": 256,
    }  # fmt: skip


def test_a_short_single_run_is_no_time(maker: Callable[[str], ModuleType], tmp_path: Path) -> None:
    times = maker("choices_times")
    sizes = [GemmProblem(size, size, size) for size in (8, 16, 24, 32)]
    lines = [line(size, us, runs) for size, us, runs in zip(sizes, (20.0, 20.0, 90.0, 5.0), (1, 7, 1, 7), strict=True)]
    path = tmp_path / "sweep.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for each in ({"environment": {"time_utc": "2026-01-02T00:00:00"}}, *lines):
            file.write(json.dumps(each) + "\n")
    taken, (one,) = times.swept([path], left_out={"32x32x32"})
    assert taken == "2026-01-02"
    assert {problem.label: us for (problem, _), us in one.us.items()} == {"16x16x16": 20.0, "24x24x24": 90.0}


def test_the_regret_is_that_of_the_least_estimate(maker: Callable[[str], ModuleType]) -> None:
    maker("choices_times")
    maker("choices_fit")
    maker("choices")
    offline = maker("choices_regret")
    problem, wide = GemmProblem(64, 64, 64), find_kernel("naive").configure({"BM": 16, "BN": 64})
    slower = replace(TILES, config=wide, figures=Figures(50.0, 0.1, 0.1))
    rule = offline.without_times(replace(EMPTY, entries=(slower, replace(TILES, times_us={problem.label: 1e9}))))
    first, second = (offline.Trial("naive", config) for config in (CONFIG, wide))
    found = offline.judged(rule, problem, {first.key: 12.0, second.key: 10.0})
    assert (found.regret, found.known_as, found.chosen.key, found.best.key) == (
        1.2,
        offline.EXACT,
        first.key,
        second.key,
    )
    # The choice has no time: the next one that has counts, or it is at least as slow as the slowest of the fastest.
    other = ("async_copy", ("BM", 1))
    found = offline.judged(rule, problem, {second.key: 10.0, other: 8.0})
    assert (found.regret, found.known_as, found.chosen.key) == (1.25, offline.NEXT, second.key)
    # Of a first pass the fastest two are timed again, and the one chosen then, which was slow.
    chosen_then = {"kernel": "naive", "config": {"BM": 8}, "us": 90.0, "quick_us": 80.0}
    again = [
        {"kernel": "naive", "config": wide, "us": 10.0, "quick_us": 9.0}, chosen_then,
        {"kernel": "async_copy", "config": {"BM": 1}, "us": 8.0, "quick_us": 10.0},
    ]  # fmt: skip
    record = {"shapes": [{"problem": problem.to_json(), "again": again}], "timed_again": 2}
    (found,) = offline.of_record(rule, record)
    assert (found.regret, found.known_as, found.chosen.key) == (1.25, offline.AT_LEAST, first.key)


@pytest.mark.in_turns(20)
def test_all_draws_of_the_sweeps_are_judged(maker: Callable[[str], ModuleType]) -> None:
    """The draws are those that `make gpu-sweep` names, and the sweeps have times of nearly all of their products."""
    maker("choices_times")
    maker("choices_fit")
    maker("choices")
    offline = maker("choices_regret")
    known, problems = offline.recorded()
    for seed, count, most in offline.DRAWS:
        labels = {problem.label for problem in offline.draw(seed, count, most=2**most)}
        assert labels <= known.keys()
        assert all(problems[label].label == label and len(known[label]) > 5 for label in labels)
