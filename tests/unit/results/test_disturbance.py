"""A climb that something disturbed says so, and one that nothing did does not."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from gemmlab.core.records import Record, Sample
from gemmlab.results.disturbance import disturbances
from gemmlab.timing.climb import run_climb
from unit.timing.test_climb import climb, fake_bench


@pytest.fixture(autouse=True)
def _two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)


@pytest.fixture
def record() -> Record:
    return run_climb(climb(), bench=fake_bench)[0]


def slowed(record: Record, name: str, threads: int, *factors: float) -> Record:
    """The same with a contestant's times multiplied in turn."""

    def slow(samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
        return tuple(replace(s, time_us=s.time_us * factors[i % len(factors)]) for i, s in enumerate(samples))

    return replace(record, results=tuple(
        replace(r, samples=slow(r.samples)) if (r.contestant, r.threads) == (name, threads) else r
        for r in record.results
    ))  # fmt: skip


@pytest.mark.in_turns(20)
def test_a_quiet_climb_says_nothing(record: Record) -> None:
    assert record.notes == ()
    assert disturbances(slowed(record, "probe", 2, 1 / 0.86)) == []


@pytest.mark.in_turns(20)
def test_a_peak_that_does_not_grow_with_the_threads_is_told(record: Record) -> None:
    (said,) = disturbances(slowed(record, "probe", 2, 1 / 0.84))
    assert "the FMA peak on 2 threads, 84.0 GFLOP/s, is 0.84 of 2 times that on one (50.0)" in said
    assert said.endswith("this concerns both, gemmlab.gemm, rival, other")


@pytest.mark.in_turns(20)
def test_rows_whose_times_spread_are_named(record: Record) -> None:
    noisy = slowed(slowed(record, "kernel:both", 2, 1.0, 1.0, 2.0), "rival", 1, 1.0, 1.05, 1.1)
    (said,) = disturbances(noisy)
    assert said == "times spread by more than 15% (middle half to median): both 64³ on 2 threads 100%"


@pytest.mark.in_turns(20)
def test_the_record_and_so_the_table_carry_the_warning() -> None:
    def disturbed(plan: Any, **more: Any) -> Record:
        return slowed(fake_bench(plan, **more), "probe", 2, 3.0)

    record, _ = run_climb(climb(), bench=disturbed)
    assert [note for note in record.notes if "is 0.33 of 2 times that on one" in note]
