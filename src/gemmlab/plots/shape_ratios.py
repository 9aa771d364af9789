"""Chart of speed ratios over a suite of shapes: a row for each family, a mark for each shape, on a log scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from gemmlab.core.stats import geometric_mean
from gemmlab.plots.chart import BLACK, BLUE, VERMILION

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, slots=True)
class ShapeRatio:
    """The speed of `gemmlab.gemm` at one shape, divided by that of the peer library timed beside it."""

    family: str
    shape: str
    ratio: float
    beside: str
    """Name of the peer library."""


def shape_ratios(points: Sequence[ShapeRatio]) -> alt.LayerChart:
    """Draw a mark for each shape, red if its ratio is below 1, else blue, and a diamond for the geometric mean of each
    family. The shape with the least ratio of each family is named.
    """
    import altair as alt

    families = list(dict.fromkeys(point.family for point in points))
    by_family = {family: [point for point in points if point.family == family] for family in families}
    means = [
        {"family": family, "ratio": geometric_mean([point.ratio for point in mine])}
        for family, mine in by_family.items()
    ]
    worst = [asdict(min(mine, key=lambda point: point.ratio)) for mine in by_family.values()]
    x = alt.X(
        "ratio:Q", title="speed to the faster of torch and CuPy", scale=alt.Scale(type="log", nice=False, padding=90)
    )
    y = alt.Y("family:N", sort=families, title=None, axis=alt.Axis(grid=True))
    slower = alt.condition(alt.datum.ratio < 1, alt.value(VERMILION), alt.value(BLUE))
    marks = alt.Chart(alt.InlineData(values=[asdict(point) for point in points]))
    line = alt.Chart(alt.InlineData(values=[{"ratio": 1}]))
    middle, least = (alt.Chart(alt.InlineData(values=values)).encode(x=x, y=y) for values in (means, worst))
    layers: list[alt.Chart] = [
        line.mark_rule(color="#888888", strokeWidth=1.5).encode(x=x),
        marks.mark_tick(thickness=2, size=18, opacity=0.75).encode(x=x, y=y, color=slower),
        middle.mark_point(shape="diamond", size=70, filled=True, color=BLACK, opacity=1),
        least.mark_text(align="right", dx=-5, fontSize=10, color="#444444").encode(text="shape:N"),
    ]
    subtitle = [
        "Each mark is a shape, slower if left of the line; diamond: geometric mean of the family; named: its worst"
    ]
    title = alt.TitleParams(text="gemmlab.gemm by shape", subtitle=subtitle)
    return alt.LayerChart(layer=layers, width=620, height=alt.Step(34), title=title)
