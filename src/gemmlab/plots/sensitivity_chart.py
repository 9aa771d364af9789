"""Chart of the effect of each parameter: times around the best configuration, divided by its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gemmlab.core.numerals import duration
from gemmlab.core.words import assignments
from gemmlab.plots.chart import BLUE, ORANGE
from gemmlab.results.sensitivity import Change, Sensitivity

if TYPE_CHECKING:
    import altair as alt

MOST_PAIRS = 20
"""Most changes of two parameters that are drawn: those that cost least."""


def sensitivity_chart(found: Sensitivity) -> alt.LayerChart:
    """Draw a bar for each change of one parameter, and below them `MOST_PAIRS` of the changes of two parameters."""
    import altair as alt

    pairs = sorted(found.pairs, key=lambda change: change.ratio)[:MOST_PAIRS]
    rows = [_row(change, "one parameter") for change in found.single] + [_row(one, "two") for one in pairs]
    names = [row["change"] for row in rows]
    how = "predicted" if found.predicted else "measured"
    subtitle = [f"Around {assignments(found.best)}", f"{how}: {duration(found.us)}; 1 is equally fast"]
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=alt.Y("change:N", sort=names, title=None))
    domain = alt.Scale(zero=False, type="log", nice=False)
    colour = alt.Color(
        "kind:N", scale=alt.Scale(domain=["one parameter", "two"], range=[BLUE, ORANGE]),
        legend=alt.Legend(title=None, orient="bottom"),
    )  # fmt: skip
    layers: list[alt.Chart] = [
        base.mark_rule(strokeWidth=6).encode(
            x=alt.X("ratio:Q", title="time to the best configuration's", scale=domain), x2="one:Q", color=colour,
        ),
        base.mark_point(filled=True, size=45, opacity=1).encode(x=alt.X("ratio:Q", scale=domain), color=colour),
    ]  # fmt: skip
    title = alt.TitleParams(text=f"What parameters matter: {found.title}", subtitle=subtitle)
    return alt.LayerChart(layer=layers, width=460, height=alt.Step(16), title=title)


def _row(change: Change, kind: str) -> dict[str, Any]:
    moves = zip(change.names, change.before, change.after, strict=True)
    name = ", ".join(f"{name} {old} -> {new}" for name, old, new in moves)
    return {"change": name, "ratio": change.ratio, "one": 1.0, "kind": kind}
