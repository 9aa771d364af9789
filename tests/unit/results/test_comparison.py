"""Two records compared: laws that hold for any records, answers known beforehand, and real records."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab.core.errors import RecordError, UsageError
from gemmlab.core.records import Record, load_record
from gemmlab.results.comparison import (
    AMBIGUOUS,
    FASTER,
    MENDED,
    SAME,
    SLOWER,
    WRONG,
    compare,
    missing_cases,
)
from support import paths
from support.measured_records import record, result, verdicts

MIRRORED = {SLOWER: FASTER, FASTER: SLOWER, SAME: SAME, AMBIGUOUS: AMBIGUOUS}


def grid(least: float, most: float) -> st.SearchStrategy[list[list[float]]]:
    """Times of a few processes, some rounds each."""
    rows = st.lists(st.floats(least, most), min_size=3, max_size=7)
    return st.lists(rows, min_size=1, max_size=3)


@pytest.mark.in_turns(20)
@given(grid(1, 1000), grid(1, 1000))
@settings(max_examples=15, deadline=None)
def test_a_record_beside_itself_is_the_same(one: list[list[float]], two: list[list[float]]) -> None:
    whole = record(result("kernel:a", one), result("kernel:b", two), result("peer", one, role="peer"))
    for found in (compare(whole, whole), compare(whole, whole, relative_to="peer", threshold=0)):
        assert set(verdicts(found)) == {SAME}
        assert {(c.ratio.value, c.ratio.low, c.ratio.high) for c in found.cases} == {(1.0, 1.0, 1.0)}
        assert not found.regressions


@pytest.mark.in_turns(20)
@given(grid(90, 130), grid(90, 130), grid(90, 130), grid(90, 130), st.booleans())
@settings(max_examples=20, deadline=None)
def test_the_other_way_round_everything_is_mirrored(
    a: list[list[float]], b: list[list[float]], c: list[list[float]], d: list[list[float]], beside: bool
) -> None:
    old = record(result("kernel:a", a), result("peer", c, role="peer"))
    new = record(result("kernel:a", b), result("peer", d, role="peer"))
    name = "peer" if beside else ""
    there, back = compare(old, new, relative_to=name), compare(new, old, relative_to=name)
    assert [MIRRORED[verdict] for verdict in verdicts(there)] == verdicts(back)
    for one, other in zip(there.cases, back.cases, strict=True):
        assert [1 / one.ratio.value, 1 / one.ratio.high, 1 / one.ratio.low] == pytest.approx(
            [other.ratio.value, other.ratio.low, other.ratio.high]
        )


@given(grid(100, 101), grid(100, 101), st.sampled_from([(1.2, SLOWER), (1 / 1.2, FASTER), (1.0, SAME), (1.015, SAME)]))
@settings(max_examples=20, deadline=None)
def test_a_fifth_more_than_the_noise_is_seen_and_the_noise_is_not(
    old: list[list[float]], new: list[list[float]], change: tuple[float, str]
) -> None:
    factor, verdict = change
    scaled = [[factor * time for time in row] for row in new]
    found = compare(record(result("kernel:a", old)), record(result("kernel:a", scaled)))
    assert verdicts(found) == [verdict]
    assert bool(found.regressions) == (verdict == SLOWER)
    (case,) = found.cases
    assert case.ratio.low <= case.ratio.value <= case.ratio.high


def test_the_interval_is_that_of_medians_drawn_from_each_record() -> None:
    # The median of three draws out of 1, 2, 4 is the least or the greatest in 7 of 27 cases each.
    old, new = record(result("kernel:a", [[1, 2, 4]])), record(result("kernel:a", [[2, 2, 2]]))
    (case,) = compare(old, new).cases
    assert (case.ratio.value, case.ratio.low, case.ratio.high) == pytest.approx((1.0, 0.5, 2.0))
    assert (case.verdict, case.old_us, case.new_us) == (AMBIGUOUS, 2.0, 2.0)


def test_processes_are_drawn_as_wholes() -> None:
    """Two processes that differ by far more than their rounds do: which of them is drawn decides."""
    old, new = record(result("kernel:a", [[10] * 9, [20] * 9])), record(result("kernel:a", [[20] * 9, [20] * 9]))
    (case,) = compare(old, new).cases
    assert (case.ratio.low, case.ratio.high) == pytest.approx((0.5, 1.0))
    # The same spread within each process, where the median of a process hardly moves.
    spread = np.linspace(10, 20, 15)
    (case,) = compare(record(result("kernel:a", [spread, spread])), new).cases
    assert 0.55 < case.ratio.low < case.ratio.high < 0.95


def test_the_threshold_says_what_matters() -> None:
    old, new = record(result("kernel:a", [[100] * 5])), record(result("kernel:a", [[105] * 5]))
    assert [verdicts(compare(old, new, threshold=percent))[0] for percent in (0, 3, 4.9, 5.1, 20)] == [
        SLOWER, SLOWER, SLOWER, SAME, SAME,
    ]  # fmt: skip
    for bad in (-1.0, 100.0, float("nan")):
        with pytest.raises(UsageError, match="threshold"):
            compare(old, new, threshold=bad)


def test_of_two_samples_nobody_can_tell() -> None:
    found = compare(record(result("kernel:a", [[1, 1]])), record(result("kernel:a", [[9, 9, 9]])))
    assert verdicts(found) == [AMBIGUOUS]
    assert found.cases[0].notes == ("too few samples",)


def test_a_peer_that_became_slower_is_no_regression() -> None:
    slow = [result(name, [[2] * 5], role=role) for name, role in (("cublas", "peer"), ("gemmlab", "library call"))]
    fast = [replace(r, samples=tuple(replace(s, time_us=1.0) for s in r.samples)) for r in slow]
    found = compare(record(*fast), record(*slow))
    assert verdicts(found) == [SLOWER, SLOWER]
    assert [case.key.contestant for case in found.regressions] == ["gemmlab"]


def test_beside_a_peer_a_slower_machine_is_no_regression() -> None:
    times = np.array([[10.0, 11.0, 10.5, 10.2, 10.8]])
    old = record(result("kernel:a", times), result("openblas:best", 2 * times, role="peer"), result("kernel:b", times))
    machine = [replace(r, samples=tuple(replace(s, time_us=1.3 * s.time_us) for s in r.samples)) for r in old.results]
    new = record(*machine[:2], result("kernel:b", 1.3 * 1.3 * times))
    assert verdicts(compare(old, new)) == [SLOWER] * 3
    found = compare(old, new, relative_to="openblas")
    assert {case.key.contestant: case.verdict for case in found.cases} == {"kernel:a": SAME, "kernel:b": SLOWER}
    # What it is judged beside is shown by itself.
    (own,) = [mean for mean in found.means if mean.role == "reference"]
    assert own.contestant == "openblas:best"
    assert own.ratio.value == pytest.approx(1 / 1.3)
    for name, hint in (("mkl", "in both are: kernel:a, kernel:b, openblas"), ("openblsa", r"did you mean openblas\?")):
        with pytest.raises(RecordError, match=f"no case was measured beside '{name}' in both records; {hint}"):
            compare(old, new, relative_to=name)


def test_cases_without_the_reference_are_listed() -> None:
    old = record(
        result("kernel:a", [[1] * 5]), result("mkl", [[1] * 5], role="peer"), result("kernel:a", [[1] * 5], label="9")
    )
    found = compare(old, old, relative_to="mkl")
    assert [key.label for key in found.without_reference] == ["9"]
    assert [case.key.label for case in found.cases] == ["64x64x64"]


def test_results() -> None:
    """A wrong answer is a regression however fast it came, unless it was wrong before."""
    right, wrong = result("kernel:a", [[2] * 5]), replace(result("kernel:a", [[1] * 5]), verified=False)
    unknown = replace(right, verified=None)
    for old, new, verdict, regressions in (
        (right, wrong, WRONG, 1), (unknown, wrong, WRONG, 1), (wrong, wrong, WRONG, 0), (wrong, right, MENDED, 0),
        (right, unknown, SAME, 0),
    ):  # fmt: skip
        found = compare(record(old), record(new))
        assert (verdicts(found), len(found.regressions)) == ([verdict], regressions)


def test_the_same_code_is_told_from_other_code() -> None:
    def run(times: Any, digest: str) -> Record:
        return record(result("kernel:a", times, code_sha256=digest, config={"BM": len(digest)}))

    fast, slow = [[1] * 5], [[2] * 5]
    same, other = compare(run(fast, "x"), run(slow, "x")), compare(run(fast, "x"), run(slow, "yy"))
    assert [c.same_code for c in (*same.cases, *other.cases)] == [True, False]
    assert other.cases[0].notes == ("different configuration: BM=1, then BM=2",)
    assert any("the same machine code" in text for text in same.warnings)
    assert not any("the same machine code" in text for text in other.warnings)
    assert (len(same.regressions), len(other.regressions)) == (1, 1)
    passing = [compare(run(fast, "x"), run(slow, d), ignore_same_code=True).regressions for d in ("x", "yy")]
    assert [len(found) for found in passing] == [0, 1]


def test_cases_of_one_record_are_listed() -> None:
    a, b, c = (result(name, [[1] * 5]) for name in ("kernel:a", "kernel:b", "kernel:c"))
    peer = result("mkl", [[1] * 5], role="peer")
    found = compare(record(a, b, peer), record(b, c))
    assert [key.contestant for key in found.only_old] == ["kernel:a", "mkl"]
    assert [key.contestant for key in found.only_new] == ["kernel:c"]
    assert [key.contestant for key in missing_cases(record(a, b, peer), found)] == ["kernel:a"]


@cache
def real(name: str) -> Record:
    return load_record(paths.RESULTS / name)


@pytest.mark.in_turns(20)
def test_two_measurements_of_an_h200_on_two_days() -> None:
    """Nothing there is slower, some code is other code, and cuBLAS is the same beside everything."""
    old, new = real("h200/gemm.json"), real("h200/climb-cuda.json")
    found = compare(old, new)
    assert len(found.cases) >= 15
    assert set(verdicts(found)) == {SAME}
    assert {case.same_code for case in found.cases if case.role == "rung"} == {True, False}
    assert any("kind: bench, then climb" in text for text in found.warnings)
    assert set(verdicts(compare(old, new, relative_to="cublas"))) == {SAME}


@pytest.mark.in_turns(20)
def test_a_real_record_with_one_kernel_made_slower() -> None:
    old = real(f"{paths.CPU}/gemm.json")
    old = replace(old, results=tuple(r for r in old.results if r.label in ("512x512x512", "16x4096x4096")))
    slowed = tuple(
        replace(r, samples=tuple(replace(s, time_us=1.6 * s.time_us) for s in r.samples))
        if r.contestant == "gemmlab"
        else r
        for r in old.results
    )
    found = compare(old, replace(old, results=slowed))
    ours = {case.verdict for case in found.cases if case.key.contestant == "gemmlab"}
    assert (ours, len(found.regressions)) == ({SLOWER}, 4)
    beside = compare(old, replace(old, results=slowed), relative_to="mkl")
    assert {case.verdict for case in beside.cases if case.key.contestant == "gemmlab"} == {SLOWER}
    assert all(case.key.contestant == "gemmlab" for case in found.regressions)
