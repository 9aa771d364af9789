from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from gemmlab.core.errors import UsageError
from gemmlab.core.records import Record, Result, Sample
from gemmlab.plots.chart import render, save, specification
from gemmlab.plots.curves import Point, bench_chart, bench_points, curve_chart
from gemmlab.plots.ladder import KINDS, Bar, climb_chart, ladder_chart
from gemmlab.results.climb_rows import short_size

HOSTILE = "</script><script>alert(1)</script>&\"'"
BARS = [
    Bar("naive_ijk", "rung", 1, 1.31, "512x512x512", 0.006),
    Bar("packed", "rung", 1, 122.4, "1024x1024x1000"),
    Bar("gemmlab.gemm", "library call", 2, 401.2, "1024x1024x1024", 0.9),
    Bar("openblas", "peer", 2, 395.0, "1024x1024x1024"),
]
PEAKS = {1: 230.0, 2: 455.0}


def texts(svg: str) -> list[str]:
    return [html.unescape(found) for found in re.findall(r"<(?:text|tspan)[^>]*>([^<]+)</", svg)]


@pytest.mark.in_turns(20)
def test_ladder_svg_names_every_entry_size_value_and_peak() -> None:
    svg = render(specification(ladder_chart(BARS, PEAKS, title="a title", subtitle=["below"])), ".svg").decode()
    shown = texts(svg)
    joined = "\n".join(shown)
    for wanted in ("naive_ijk 512³", "packed 1024x1024x1000", "gemmlab.gemm", "openblas", "a title", "below"):
        assert wanted in re.sub(" +", " ", joined)
    assert "1.31 (0.6%)" in shown
    # Of the peak beside it, not of the line.
    assert "401 (90.0%)" in shown
    assert "122" in shown
    assert "FMA peak 230" in shown
    assert "FMA peak 455" in shown
    assert [text for text in shown if text in ("1 thread", "2 threads")] == ["1 thread", "2 threads"]
    assert set(KINDS) <= set(shown)


@pytest.mark.in_turns(20)
def test_ladder_bars_keep_the_order_given() -> None:
    bars = [Bar(name, "rung", 1, value, "64x64x64") for name, value in (("zeta", 3.0), ("alpha", 1.0), ("mid", 2.0))]
    shown = texts(render(specification(ladder_chart(bars, {})), ".svg").decode())
    order = [text.split()[0] for text in shown if text.split()[0] in ("zeta", "alpha", "mid")]
    assert order == ["zeta", "alpha", "mid"]


def test_a_size_that_most_bars_have_is_told_once() -> None:
    bars = [Bar(f"rung_{n}", "rung", 1, 1.0 + n, "8192x8192x8192") for n in range(3)]
    for others, labels in (([], set()), ([Bar("slow", "rung", 1, 1.0, "2048x2048x2048")], {"slow 2048³"})):
        shown = texts(render(specification(ladder_chart([*bars, *others], {})), ".svg").decode())
        assert {"rung_0", "rung_1", "rung_2", *labels} <= {re.sub(" +", " ", text) for text in shown}
        (told,) = (text for text in shown if "8192³" in text)
        assert told.startswith("GFLOP/s at 8192³, float32")
    mixed = [*bars[:1], Bar("slow", "rung", 1, 1.0, "2048x2048x2048")]
    shown = texts(render(specification(ladder_chart(mixed, {})), ".svg").decode())
    assert "rung_0 8192³" in {re.sub(" +", " ", text) for text in shown}


def test_ladder_without_a_peak_draws_no_peak_line() -> None:
    shown = texts(render(specification(ladder_chart(BARS, {})), ".svg").decode())
    assert not [text for text in shown if "peak" in text.lower() and "GFLOP" not in text]
    assert "1.31 (0.6%)" in shown


def test_curves_svg_names_series_sizes_and_units() -> None:
    points = [Point(name, n, 100.0 + n / 100, 99.0, 130.0) for name in ("gemm", "openblas") for n in (64, 256, 1024)]
    shown = texts(render(specification(curve_chart(points, peak=230.0, title="speed")), ".svg").decode())
    for wanted in ("gemm", "openblas", "64", "256", "1024", "GFLOP/s (float32)", "FMA peak 230", "speed"):
        assert wanted in shown


@pytest.mark.parametrize("kind", ["ladder", "curves"])
def test_hostile_names_stay_text(kind: str) -> None:
    if kind == "ladder":
        spec = specification(ladder_chart([Bar(HOSTILE, "rung", 1, 1.0, HOSTILE)], {1: 2.0}, title=HOSTILE))
    else:
        spec = specification(curve_chart([Point(HOSTILE, 64, 1.0)], title=HOSTILE))
    svg = render(spec, ".svg").decode()
    assert "<script" not in svg
    assert any("alert(1)" in text for text in texts(svg))
    page = render(spec, ".html").decode()
    assert HOSTILE not in page
    embedded = re.search(r'vegaEmbed\("#chart", (\{.*\}), \{"actions"', page)
    assert embedded is not None
    assert "<" not in embedded[1]
    assert json.loads(embedded[1])["title"]["text"] == HOSTILE


def test_page_needs_nothing_from_the_network() -> None:
    page = render(specification(ladder_chart(BARS, PEAKS)), ".html").decode()
    assert page.count("<script>") == 2
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=", page.partition("<script>")[0])


def test_save_writes_each_format_and_png_has_two_pixels_a_unit(tmp_path: Path) -> None:
    svg, png = tmp_path / "ladder.svg", tmp_path / "ladder.png"
    save(ladder_chart(BARS, PEAKS), svg, png)
    width = re.search(r'<svg[^>]* width="([0-9.]+)"', svg.read_text(encoding="utf-8"))
    assert width is not None
    data = png.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert abs(int.from_bytes(data[16:20], "big") - 2 * float(width[1])) <= 2


def test_unknown_format_is_refused() -> None:
    with pytest.raises(UsageError, match=r"\.gif"):
        render({}, ".gif")


def test_short_size() -> None:
    assert short_size("512x512x512") == "512³"
    assert short_size("16x4096x4096") == "16x4096x4096"
    assert short_size("4194304") == "4194304"


def test_bench_chart_takes_the_cubic_sizes_of_one_thread_count() -> None:
    def measured(name: str, label: str, threads: int, role: str, time_us: float) -> Result:
        samples = tuple(Sample(0, r, time_us * (1 + r / 100), 1, 1, (time_us,)) for r in range(3))
        return Result(name, {}, label, 2 * 64**3, threads, {"role": role}, samples)

    record = Record("bench", "gemm", {"cpu": "A CPU"}, {}, None, (
        measured("gemmlab", "64x64x64", 1, "library call", 10.0),
        measured("openblas:best", "64x64x64", 1, "peer", 11.0),
        measured("gemmlab", "64x64x4096", 1, "library call", 10.0), measured("late", "128x128x128", 2, "peer", 1.0),
        measured("probe", "64x64x64", 1, "peak", 5.0), measured("baseline:slow", "64x64x64", 1, "baseline", 500.0),
    ))  # fmt: skip
    shown = texts(render(specification(bench_chart(record, 1)), ".svg").decode())
    for wanted in ("gemmlab", "openblas", "64", "FMA peak 104", "Speed by size, 1 thread", "A CPU"):
        assert wanted in shown
    assert not {"late", "probe", "baseline:slow", "128", "4096"} & set(shown)


def test_curves_leave_out_lengths_with_another_operator() -> None:
    results = tuple(
        Result("numpy", {}, label, 1024, 1, {"role": "peer"}, (Sample(0, 0, 1.0, 1, 1, (1.0,)),), bytes=4096)
        for label in ("1024", "2048 min", "4096 max wide")
    )
    assert [point.size for point in bench_points(Record("bench", "reduce", {}, {}, None, results), 1)] == [1024]


def test_sums_are_shown_in_bytes_and_beside_what_memory_gives() -> None:
    def measured(name: str, n: int, role: str, gbs: float) -> Result:
        samples = tuple(Sample(0, r, 4 * n / (gbs * 1e3), 1, 1, (1.0,)) for r in range(3))
        return Result(name, {}, str(n), n, 1, {"role": role, "step": 0}, samples, bytes=4 * n)

    results = [
        measured(name, n, role, gbs)
        for n in (1000, 1_000_000)
        for name, role, gbs in (("kernel:reduce_scalar", "rung", 4.0), ("numpy", "peer", 8.0), ("probe", "peak", 16.0))
    ]
    bench = Record("bench", "reduce", {"cpu": "A CPU"}, {}, None, tuple(results))
    curves = texts(render(specification(bench_chart(bench, 1)), ".svg").decode())
    assert {"GB/s (float32)", "rate of reading memory 16", "elements", "1k", "1M"} <= set(curves)
    bars = texts(render(specification(climb_chart(bench)), ".svg").decode())
    assert {"rate of reading memory 16", "4.00 (25.0%)", "8.00 (50.0%)"} <= set(bars)
    assert any(text.startswith("GB/s at 1000000, ") and "share of the rate of reading memory" in text for text in bars)
    assert not [text for text in (*curves, *bars) if "FMA" in text or "FLOP" in text]
