"""Roofline chart: the speeds that memory levels and arithmetic allow by operations per byte, with kernels as marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gemmlab.plots.chart import BLACK, BLUE, ORANGE, TFLOPS, VERMILION, Unit
from gemmlab.plots.marks import marks

if TYPE_CHECKING:
    import altair as alt

_COLOURS = (BLUE, ORANGE, VERMILION)


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """A kernel's place in the chart: its speed and its operations per byte moved at each level."""

    name: str
    gflops: float
    intensity: Mapping[str, tuple[float, float]]
    """Operations per byte by level: the least, if no access hits a cache, and the most, with perfect caching."""


def roofline_chart(
    kernels: Sequence[RooflinePoint], gbs: Mapping[str, float], peaks: Mapping[str, float], *,
    title: str = "", subtitle: Sequence[str] = (), unit: Unit = TFLOPS,
) -> alt.LayerChart:  # fmt: skip
    """Draw a roofline with logarithmic axes.

    `gbs` is the peak bandwidth in GB/s by level, that of L1 first; `peaks` are the GFLOP/s of arithmetic by name. A
    kernel has one mark per level, in the colour of the level's roof, at the most operations per byte; a line from the
    mark goes to the least.
    """
    import altair as alt

    highest = max(peaks.values())
    found = [ends for kernel in kernels for ends in kernel.intensity.values()]
    low = min([*(ends[0] for ends in found), *(highest / rate for rate in gbs.values())]) / 2
    high = max([*(ends[1] for ends in found), *(highest / rate for rate in gbs.values())]) * 3
    bottom = min([*(kernel.gflops for kernel in kernels), min(peaks.values()) / 8]) / 3 / unit.times
    roofs: list[dict[str, Any]] = []
    for level, rate in gbs.items():
        ridge = highest / rate
        start = max(low, bottom * unit.times / rate)
        for at in (start, ridge):
            roofs.append({"level": level, "x": at, "y": at * rate / unit.times})
    places = [
        {"level": level, "kernel": kernel.name, "low": ends[0], "x": ends[1], "y": kernel.gflops / unit.times}
        for kernel in kernels
        for level, ends in kernel.intensity.items()
    ]
    x = alt.X("x:Q", scale=alt.Scale(type="log", domain=[low, high], nice=False),
              axis=alt.Axis(title="floating-point operations for a byte moved", format="~g", tickCount=6))  # fmt: skip
    y = alt.Y("y:Q", scale=alt.Scale(type="log", domain=[bottom, highest / unit.times * 1.6], nice=False),
              axis=alt.Axis(title=unit.name, format="~g", tickCount=5))  # fmt: skip
    names = [kernel.name for kernel in kernels]
    colour = alt.Color("level:N", scale=alt.Scale(domain=list(gbs), range=list(_COLOURS[: len(gbs)])),
                       legend=alt.Legend(title="bytes moved by"))  # fmt: skip
    shape = alt.Shape(
        "kernel:N",
        scale=alt.Scale(domain=names, range=marks(len(names))),
        legend=alt.Legend(title=None, symbolLimit=0, columns=1 + len(names) // 24),
    )
    points = alt.Chart(alt.InlineData(values=places)).encode(x=x, y=y, color=colour)
    widest = max(gbs.values())
    tops = [
        {"x": peak / widest, "y": peak / unit.times, "x2": high, "label": f"{name} {peak / unit.times:.3g}"}
        for name, peak in peaks.items()
    ]
    top = alt.Chart(alt.InlineData(values=tops))
    layers = [
        alt.Chart(alt.InlineData(values=roofs)).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour),
        top.mark_rule(color=BLACK, strokeWidth=2).encode(x=x, y=y, x2="x2:Q"),
        top.mark_text(align="right", dy=-8, fontSize=12).encode(x=alt.X("x2:Q"), y=y, text="label:N"),
        points.mark_rule(strokeWidth=2, opacity=0.5).encode(x2="low:Q"),
        points.mark_point(filled=True, size=80, opacity=1).encode(shape=shape),
    ]
    return alt.LayerChart(
        layer=layers, width=560, height=340, title=alt.TitleParams(text=title, subtitle=list(subtitle))
    )
