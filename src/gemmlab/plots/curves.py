"""Charts of speed by size: one line per series, speeds from zero.

The axis of sizes is logarithmic; with more than `MANY` sizes it is linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.core.records import Record
from gemmlab.plots.chart import BLACK, GFLOPS, SERIES_COLOURS, Unit, unit_of
from gemmlab.results.climb_rows import peaks, sample_speeds
from gemmlab.results.summary import BASELINE

if TYPE_CHECKING:
    import altair as alt

DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 3], [10, 4])
MANY, COARSE = 16, 512
"""More than `MANY` sizes are taken to be evenly spaced: their axis is linear and labelled at multiples of `COARSE`."""


@dataclass(frozen=True, slots=True)
class Point:
    """One series' speed at one size, in the operation's unit."""

    series: str
    size: int
    """The n of a product n x n x n, or the number of elements of a sum."""
    speed: float
    low: float | None = None
    """`low`, `high`: the ends of the vertical bar through the mark; no bar if `None`."""
    high: float | None = None


def bench_points(record: Record, threads: int) -> list[Point]:
    """Return the points of a bench's record at one thread count: medians with first and third quartiles.

    Only sizes with equal extents (`512x512x512`) and lengths are included, in a label that has nothing else. Probes of
    the peak, the baseline and results without samples are left out.
    """
    unit, points = unit_of(record.op), []
    for result in record.results:
        side, *others = set(result.label.split("x"))
        beside = result.facts.get("role") in ("peak", BASELINE)
        if result.threads != threads or not result.samples or others or not side.isdecimal() or beside:
            continue
        speeds = sample_speeds(result, unit.of_op)
        low, middle, high = (float(value) for value in np.percentile(speeds, (25, 50, 75)))
        points.append(Point(result.contestant.removesuffix(":best"), int(side), middle, low, high))
    return points


def bench_chart(record: Record, threads: int) -> alt.LayerChart:
    """Draw the points of `bench_points` as lines, with the median probed peak."""
    count = "1 thread" if threads == 1 else f"{threads} threads"
    return curve_chart(
        bench_points(record, threads),
        peak=peaks(record).get(threads),
        title=f"Speed by size, {count}",
        subtitle=[str(record.environment.get("cpu", "")), "Medians of turns taken side by side; bars: middle half"],
        unit=unit_of(record.op),
        cubic=any("x" in result.label for result in record.results),
    )


def curve_chart(
    points: Sequence[Point], *, peak: float | None = None, title: str = "", subtitle: Sequence[str] = (),
    unit: Unit = GFLOPS, colours: Sequence[str] = SERIES_COLOURS, cubic: bool = True,
) -> alt.LayerChart:  # fmt: skip
    """Draw one line per series, in the order in which they first occur; dashes distinguish them without colour.

    Speeds and `peak` are in the operation's unit. Sizes are edges of cubes if `cubic`, else lengths.
    """
    import altair as alt

    names = list(dict.fromkeys(point.series for point in points))
    sizes = sorted({point.size for point in points})
    rows: list[dict[str, Any]] = [
        {
            "series": point.series,
            "size": point.size,
            "speed": point.speed / unit.times,
            "low": (point.speed if point.low is None else point.low) / unit.times,
            "high": (point.speed if point.high is None else point.high) / unit.times,
        }
        for point in points
    ]
    line_at = (peak or 0.0) / unit.times
    top = max([line_at, *(row["high"] for row in rows), 1e-9]) * 1.05
    palette = [colours[index % len(colours)] for index in range(len(names))]
    dashes = [DASHES[index % len(DASHES)] for index in range(len(names))]
    steps = len(sizes) > MANY
    x = alt.X(
        "size:Q",
        scale=alt.Scale(nice=False) if steps else alt.Scale(type="log", base=2, nice=False),
        axis=alt.Axis(
            title="n (n x n x n)" if cubic else "elements", format="d" if cubic else ".3~s", grid=False,
            values=[n for n in sizes if not steps or n % COARSE == 0], labelOverlap="greedy",
        ),
    )  # fmt: skip
    y = alt.Y("speed:Q", scale=alt.Scale(domain=[0, top], nice=False), title=f"{unit.name} (float32)")
    legend = alt.Legend(
        title=None, orient="right", symbolType="stroke", symbolStrokeWidth=2.5, symbolSize=500, symbolOpacity=1
    )
    colour = alt.Color("series:N", scale=alt.Scale(domain=names, range=palette), legend=legend)
    dash = alt.StrokeDash("series:N", scale=alt.Scale(domain=names, range=dashes), legend=legend)
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=x, y=y, color=colour)
    layers: list[alt.Chart] = [
        base.mark_rule(opacity=0.35, strokeWidth=4).encode(y=alt.Y("low:Q", title=""), y2="high:Q"),
        base.mark_line(strokeWidth=2).encode(strokeDash=dash),
        base.mark_point(filled=True, size=9 if steps else 36, opacity=1),
    ]
    if peak:
        line = alt.Chart(
            alt.InlineData(values=[{"speed": line_at, "label": f"{unit.limit} {line_at:.0f}", "size": sizes[0]}])
        )
        layers.append(line.mark_rule(color=BLACK, strokeDash=[5, 3], strokeWidth=1.5).encode(y="speed:Q"))
        layers.append(
            line.mark_text(align="left", dx=6, dy=-7, fontSize=12, color=BLACK).encode(
                x="size:Q", y="speed:Q", text="label:N"
            )
        )
    return alt.LayerChart(
        layer=layers, width=600, height=320, title=alt.TitleParams(text=title, subtitle=list(subtitle))
    )
