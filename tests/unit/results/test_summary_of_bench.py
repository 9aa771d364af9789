"""The summary of a bench, against figures that are known."""

from __future__ import annotations

import pytest

from gemmlab.core.records import Record, Result, Sample
from gemmlab.ops.gemm import GemmOp
from gemmlab.results.summary import FASTEST, judge, summarise

OP = GemmOp()


def _result(name: str, role: str, times: list[float], label: str = "10x10x10", verified: bool | None = True) -> Result:
    samples = tuple(Sample(0, index, time, 1, 1, (time,)) for index, time in enumerate(times))
    return Result(name, {}, label, 2000, 1, {"role": role}, samples, verified)


def _record(*results: Result) -> Record:
    return Record("bench", "gemm", {}, {}, None, results)


def test_summary_against_known_numbers() -> None:
    summary = summarise(
        _record(
            _result("gemmlab", "library call", [1.0, 2.0, 3.0]),
            _result("quick", "peer", [3.0, 6.0, 9.0]),
            _result("slow", "peer", [8.0, 8.0, 8.0]),
            _result("probe", "peak", [0.5, 1.0, 1.5]),
        )
    )
    ours, quick, slow = summary.rows
    assert (ours.median_us, ours.iqr_us, ours.gflops, ours.peak_share) == (2.0, 1.0, 1.0, 0.5)
    assert (ours.fastest, ours.ratios[FASTEST].value) == ("quick", 3.0)
    assert ours.ratios["quick"].low == pytest.approx(3.0)
    assert ours.ratios["slow"].value == 4.0
    assert quick.ratios == slow.ratios == {}
    assert {mean.peer: mean.ratio.value for mean in summary.means} == pytest.approx(
        {"quick": 3.0, "slow": 4.0, FASTEST: 3.0}
    )
    document = summary.to_json()
    assert document["rows"][0]["ratios"]["slow"]["value"] == 4.0


def test_a_wrong_peer_is_not_the_fastest() -> None:
    row = summarise(
        _record(
            _result("gemmlab", "library call", [2.0] * 3),
            _result("wrong", "peer", [1.0] * 3, verified=False),
            _result("right", "peer", [3.0] * 3),
        )
    ).rows[0]
    assert row.fastest == "right"
    assert row.ratios["wrong"].value == 0.5


def test_the_verdict_uses_the_upper_end() -> None:
    noisy = _result("gemmlab", "library call", [1.0, 1.1, 1.2, 1.0, 1.3])
    summary = summarise(_record(noisy, _result("peer", "peer", [1.0] * 5)))
    ratio = summary.rows[0].ratios[FASTEST]
    assert ratio.value < 1.0 <= ratio.high
    assert judge(summary, 1.0, 1.0).passed
    surely_slower = judge(summarise(_record(noisy, _result("peer", "peer", [0.5] * 5))), 1.0, 0.95)
    assert not surely_slower.passed
    assert len(surely_slower.failures) == 2
    assert "10x10x10" in surely_slower.failures[0]
    assert "geometric mean of 1 problem," in surely_slower.failures[1]


def test_the_verdict_refuses_wrong_results_and_empty_comparisons() -> None:
    wrong = _result("gemmlab", "library call", [1.0] * 3, verified=False)
    assert "wrong result" in judge(summarise(_record(wrong, _result("p", "peer", [9.0] * 3))), 1.0, 1.0).failures[0]
    alone = judge(summarise(_record(_result("gemmlab", "library call", [1.0] * 3))), 1.0, 1.0)
    assert alone.failures == ("nothing was timed against a peer",)
