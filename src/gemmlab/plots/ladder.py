"""The ladder: one bar an entry, a panel a thread count, the measured FMA peak as a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gemmlab.core.records import Record
from gemmlab.measure.climb_rows import climb_rows, digits, peaks, percent, short_size
from gemmlab.plots.chart import BLACK, BLUE, GREEN, ORANGE

if TYPE_CHECKING:
    import altair as alt

KINDS = {"rung": BLUE, "library call": GREEN, "peer": ORANGE}
WIDTH = 560
BAR_STEP = 26
UNITS = "GFLOP/s, float32 (in brackets: share of the FMA peak measured in the same rounds)"


@dataclass(frozen=True, slots=True)
class Bar:
    """One measured entry of the ladder."""

    name: str
    kind: str
    """A key of `KINDS`."""
    threads: int
    gflops: float
    size: str
    peak_share: float | None = None
    """Of the FMA peak probed in the same rounds: the line is the median over all sizes."""


def climb_chart(record: Record) -> alt.VConcatChart:
    """The chart of a climb's record."""
    rows = climb_rows(record)
    bars = [Bar(row.name, row.role, row.threads, row.gflops, row.size, row.peak_share) for row in rows]
    libraries = dict.fromkeys(f"{row.name}: {row.about}" for row in rows if row.role == "peer")
    title = f"The climb on {record.environment.get('cpu', 'this CPU')}"
    return ladder_chart(bars, peaks(record), title=title, subtitle=["Medians of turns taken side by side", *libraries])


def ladder_chart(
    bars: Sequence[Bar], peaks: Mapping[int, float], *, title: str = "", subtitle: Sequence[str] = ()
) -> alt.VConcatChart:
    """Horizontal bars in the order given, GFLOP/s from zero; `peaks` maps a thread count to its FMA peak."""
    import altair as alt

    counts = sorted({bar.threads for bar in bars})
    top = max([*(bar.gflops for bar in bars), *(peaks.get(count, 0.0) for count in counts), 1e-9])
    limit = top * 1.02
    panels = [
        _panel([bar for bar in bars if bar.threads == count], peaks.get(count), count, limit, last=count == counts[-1])
        for count in counts
    ]
    chart = alt.vconcat(*panels, spacing=18)
    return chart.properties(title=alt.TitleParams(text=title, subtitle=list(subtitle)))


def _value_label(bar: Bar) -> str:
    share = percent(bar.peak_share)
    return digits(bar.gflops) + (f" ({share})" if share else "")


def _panel(bars: Sequence[Bar], peak: float | None, threads: int, limit: float, *, last: bool) -> alt.LayerChart:
    import altair as alt

    rows: list[dict[str, Any]] = [
        {
            "entry": f"{bar.name}  {short_size(bar.size)}",
            "kind": bar.kind,
            "gflops": bar.gflops,
            "label": _value_label(bar),
        }
        for bar in bars
    ]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("entry:N", sort=None, title=None, axis=alt.Axis(ticks=False, domain=False)),
        x=alt.X(
            "gflops:Q",
            scale=alt.Scale(domain=[0, limit], nice=False),
            axis=alt.Axis(title=UNITS if last else None, tickCount=10),
        ),
    )
    colour = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=list(KINDS), range=list(KINDS.values())),
        legend=alt.Legend(title=None, orient="top", direction="horizontal") if threads == bars[0].threads else None,
    )
    layers: list[alt.Chart] = [
        base.mark_bar(height={"band": 0.72}).encode(color=colour),
        # In a column of their own, so that the peak's line never crosses them.
        base.mark_text(align="left", fontSize=12, color=BLACK).encode(x=alt.value(WIDTH + 10), text="label:N"),
    ]
    if peak:
        line = alt.Chart(alt.InlineData(values=[{"gflops": peak, "label": f"FMA peak {peak:.0f}"}]))
        layers.append(line.mark_rule(color=BLACK, strokeDash=[5, 3], strokeWidth=1.5).encode(x="gflops:Q"))
        layers.append(
            line.mark_text(align="right", dx=0, dy=-9, fontSize=12, color=BLACK).encode(
                x="gflops:Q", y=alt.value(0), text="label:N"
            )
        )
    heading = "1 thread" if threads == 1 else f"{threads} threads"
    return alt.LayerChart(layer=layers).properties(
        width=WIDTH,
        height=BAR_STEP * len(rows),
        title=alt.TitleParams(text=heading, fontSize=13, offset=6, frame="group"),
    )
