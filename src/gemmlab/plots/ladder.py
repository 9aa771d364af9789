"""Chart of the ladder: one bar per entry, one panel per thread count, the measured peak as a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gemmlab.core.records import Record
from gemmlab.plots.chart import BLACK, BLUE, GFLOPS, GREEN, ORANGE, Unit, unit_of
from gemmlab.results.climb_rows import climb_rows, digits, peaks, percent, short_size

if TYPE_CHECKING:
    import altair as alt

KINDS = {"rung": BLUE, "library call": GREEN, "peer": ORANGE}
WIDTH = 560
BAR_STEP = 26
AXIS = "float32 (in brackets: share of the {limit} measured in the same rounds)"


@dataclass(frozen=True, slots=True)
class Bar:
    """One measured entry of the ladder; `speed` is in the operation's unit (GFLOP/s for a product)."""

    name: str
    kind: str
    """A key of `KINDS`."""
    threads: int
    speed: float
    size: str
    peak_share: float | None = None
    """Fraction of the peak that was probed in the same rounds; `None` without a probe. The line in `climb_chart` is
    another peak: the median over all sizes.
    """


def climb_chart(record: Record) -> alt.VConcatChart:
    """Draw every entry of a climb's record, in one panel per thread count, with the probed peaks."""
    rows = climb_rows(record)
    bars = [Bar(row.name, row.role, row.threads, row.speed, row.size, row.peak_share) for row in rows]
    libraries = dict.fromkeys(f"{row.name}: {row.about}" for row in rows if row.role == "peer")
    on_cpu = record.device.get("id", "cpu") == "cpu"
    machine = record.environment.get("cpu", "this CPU") if on_cpu else record.device.get("name")
    subtitle = ["Medians of turns taken side by side", *libraries]
    heading = in_threads if on_cpu else no_heading
    return ladder_chart(
        bars,
        peaks(record),
        title=f"The climb on {machine}",
        subtitle=subtitle,
        unit=unit_of(record.op),
        heading=heading,
    )


def in_threads(count: int) -> str:
    """Return the heading of a CPU's panel."""
    return "1 thread" if count == 1 else f"{count} threads"


def no_heading(_count: int) -> str:
    """Return an empty heading, for the single panel of a GPU."""
    return ""


def ladder_chart(
    bars: Sequence[Bar], peaks: Mapping[int, float], *, title: str = "", subtitle: Sequence[str] = (),
    unit: Unit = GFLOPS, heading: Callable[[int], str] = in_threads,
) -> alt.VConcatChart:  # fmt: skip
    """Draw horizontal bars in the order given, from zero, in one panel per thread count under its `heading`.

    Speeds and `peaks` (by thread count) are in the operation's unit. The axis names the size that most bars have
    (`common_size`); bars of another size name it in their label.
    """
    import altair as alt

    counts = sorted({bar.threads for bar in bars})
    top = max([*(bar.speed for bar in bars), *(peaks.get(count, 0.0) for count in counts), 1e-9])
    limit = top * 1.02 / unit.times
    common = common_size([bar.size for bar in bars])
    at = f" at {short_size(common)}" if common else ""
    panels = []
    for count in counts:
        mine = [replace(bar, speed=bar.speed / unit.times) for bar in bars if bar.threads == count]
        axis = f"{unit.name}{at}, {AXIS.format(limit=unit.limit)}" if count == counts[-1] else None
        panels.append(_panel(mine, peaks.get(count, 0.0) / unit.times, unit.limit, heading(count), limit, axis,
                             common))  # fmt: skip
    chart = alt.vconcat(*panels, spacing=18)
    return chart.properties(title=alt.TitleParams(text=title, subtitle=list(subtitle)))


def common_size(sizes: Sequence[str]) -> str:
    """Return the size that more than half of `sizes` are equal to; empty if there is none."""
    size, count = Counter(sizes).most_common(1)[0] if sizes else ("", 0)
    return size if 2 * count > len(sizes) else ""


def _value_label(bar: Bar) -> str:
    share = percent(bar.peak_share)
    return digits(bar.speed) + (f" ({share})" if share else "")


def _panel(
    bars: Sequence[Bar], peak: float, what: str, heading: str, limit: float, axis: str | None, common: str
) -> alt.LayerChart:
    import altair as alt

    rows: list[dict[str, Any]] = [
        {
            "entry": bar.name if bar.size == common else f"{bar.name}  {short_size(bar.size)}",
            "kind": bar.kind,
            "speed": bar.speed,
            "label": _value_label(bar),
        }
        for bar in bars
    ]
    kinds = [kind for kind in KINDS if kind in {bar.kind for bar in bars}]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("entry:N", sort=None, title=None, axis=alt.Axis(ticks=False, domain=False)),
        x=alt.X(
            "speed:Q",
            scale=alt.Scale(domain=[0, limit], nice=False),
            axis=alt.Axis(title=axis, tickCount=10),
        ),
    )
    colour = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=kinds, range=[KINDS[kind] for kind in kinds]),
        legend=alt.Legend(title=None, orient="top", direction="horizontal"),
    )
    layers: list[alt.Chart] = [
        base.mark_bar(height={"band": 0.72}).encode(color=colour),
        # The labels have a column of their own, so that the peak's line never crosses them.
        base.mark_text(align="left", dx=10, fontSize=12, color=BLACK).encode(x=alt.value("width"), text="label:N"),
    ]
    if peak:
        line = alt.Chart(alt.InlineData(values=[{"speed": peak, "label": f"{what} {peak:.0f}"}]))
        layers.append(line.mark_rule(color=BLACK, strokeDash=[5, 3], strokeWidth=1.5).encode(x="speed:Q"))
        layers.append(
            line.mark_text(align="right", dx=0, dy=-9, fontSize=12, color=BLACK).encode(
                x="speed:Q", y=alt.value(0), text="label:N"
            )
        )
    return alt.LayerChart(layer=layers).properties(
        width=WIDTH,
        height=BAR_STEP * len(rows),
        title=alt.TitleParams(text=heading, fontSize=13, offset=6, frame="group"),
    )
