"""Chart of a comparison of two records: each case's speed ratio and interval, with the threshold as a band."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gemmlab.plots.chart import BLUE, GREEN, ORANGE, PURPLE, VERMILION
from gemmlab.results.climb_rows import short_size
from gemmlab.results.comparison import AMBIGUOUS, FASTER, MENDED, SAME, SLOWER, WRONG, Case, Comparison

if TYPE_CHECKING:
    import altair as alt

_COLOURS = {SLOWER: VERMILION, WRONG: PURPLE, AMBIGUOUS: ORANGE, SAME: "#777777", FASTER: BLUE, MENDED: GREEN}
MOST_ROWS = 60
"""Most cases that are drawn: those whose ratio is furthest from 1."""


def comparison_chart(found: Comparison) -> alt.LayerChart:
    """Draw one row per case, ordered by ratio; at most `MOST_ROWS`."""
    import altair as alt

    ordered = sorted(found.cases, key=lambda case: abs(1 - case.ratio.value), reverse=True)[:MOST_ROWS]
    rows = [_row(case) for case in sorted(ordered, key=lambda case: case.ratio.value)]
    names = [row["case"] for row in rows]
    left_out = len(found.cases) - len(rows)
    subtitle = [f"Bars: 95 % intervals; band: {found.threshold:g} %, which counts as no difference"]
    subtitle += [f"{left_out} cases nearer to 1 are not drawn"] * bool(left_out)
    beside = f" beside {found.relative_to}" if found.relative_to else ""
    shown = [verdict for verdict in _COLOURS if any(row["verdict"] == verdict for row in rows)]
    colour = alt.Color(
        "verdict:N",
        scale=alt.Scale(domain=shown, range=[_COLOURS[verdict] for verdict in shown]),
        legend=alt.Legend(title=None, orient="bottom"),
    )
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("case:N", sort=names, title=None), color=colour,
    )  # fmt: skip
    axis = alt.X("ratio:Q", title=f"NEW's speed to OLD's{beside}", scale=alt.Scale(zero=False, type="log", nice=False))
    limit = 1 + found.threshold / 100
    band = alt.Chart(alt.InlineData(values=[{"ratio": 1 / limit, "high": limit}]))
    layers: list[alt.Chart] = [
        band.mark_rect(opacity=0.12, color="#777777").encode(x=axis, x2="high:Q"),
        base.mark_rule(strokeWidth=3, opacity=0.5).encode(x=alt.X("low:Q"), x2="high:Q"),
        base.mark_point(filled=True, size=45, opacity=1).encode(x=axis, shape=alt.Shape("verdict:N", legend=None)),
    ]
    title = alt.TitleParams(text="What changed between two records", subtitle=subtitle)
    return alt.LayerChart(layer=layers, width=460, height=alt.Step(16), title=title)


def _row(case: Case) -> dict[str, Any]:
    key, ratio = case.key, case.ratio
    threads = "" if key.threads == 1 else f", {key.threads} threads"
    return {
        "case": f"{key.contestant.removeprefix('kernel:')} {short_size(key.label)}{threads}", "verdict": case.verdict,
        "ratio": ratio.value, "low": ratio.low, "high": ratio.high,
    }  # fmt: skip
