"""Stalls as bars."""

from __future__ import annotations

import json

import pytest

from gemmlab.observe.profile import Profile
from gemmlab.observe.profile_reader import load_profiles
from gemmlab.plots.chart import specification
from gemmlab.plots.stalls import StallBar, stall_bars, stall_chart
from support.paths import RESULTS
from support.picture_charts import rows_of, svg_texts

RECORD = RESULTS / "h200" / "ncu.json"


def test_stall_bars_are_the_record_s() -> None:
    if not RECORD.is_file():
        pytest.skip("no record")
    profiles = [
        p for p in load_profiles(RECORD).profiles if p.size == "2048x2048x2048" and p.name in ("naive", "cublas")
    ]
    bars = stall_bars(profiles)
    assert {bar.name for bar in bars} == {"naive", "cublas"}
    assert all(bar.cycles["selected"] == pytest.approx(1.0) for bar in bars)
    texts = svg_texts(stall_chart(bars, title="Stalls"))
    assert {"Stalls", "naive", "cublas", "issued", "long scoreboard"} <= set(texts)
    assert all(f"{sum(bar.cycles.values()):.1f}" in texts for bar in bars)


def test_stalls_beyond_the_seven_longest_are_one() -> None:
    states = {f"state_{n}": float(n) for n in range(1, 10)}
    spec = specification(
        stall_chart([StallBar("one", {**states, "selected": 1.0}), StallBar("two", {"state_9": 20.0})])
    )
    rows = rows_of(spec, 0)
    one = {row["state"]: row["cycles"] for row in rows if row["name"] == "one"}
    assert one == {"issued": 1.0, **{f"state {n}": float(n) for n in range(3, 10)}, "others": 3.0}


def test_a_bar_that_would_flatten_the_others_makes_all_of_them_shares() -> None:
    short = [StallBar("a", {"wait": 3.0, "selected": 1.0}), StallBar("b", {"wait": 1.0, "selected": 1.0})]
    for first, drawn in ((15.0, {4.0, 2.0, 16.0}), (99.0, {100.0})):
        chart = stall_chart([StallBar("long", {"wait": first, "selected": 1.0}), *short])
        rows = rows_of(specification(chart), 0)
        names = {row["name"] for row in rows}
        assert {sum(row["cycles"] for row in rows if row["name"] == name) for name in names} == drawn
        texts = svg_texts(chart)
        assert {f"{first + 1:.1f}", "4.0", "2.0"} <= set(texts), "the labels are cycles in both"
        assert ("percent of a warp's time" in json.dumps(specification(chart))) is (drawn == {100.0})


def test_profiles_without_cycles_have_no_bar_and_sizes_are_told_where_they_differ() -> None:
    metric = "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"
    profiles = [
        Profile("kernel:a", "512x512x512", ("f",), {}, {}, {metric: 2.0}),
        Profile("kernel:a", "64x32x16", ("f",), {}, {}, {metric: 3.0}),
        Profile("kernel:b", "64x32x16", ("f",), {}, {}, {}),
    ]
    assert [bar.name for bar in stall_bars(profiles)] == ["a 512³", "a 64x32x16"]
