"""Chart of warp stalls: one bar per kernel with the cycles per issued instruction that a warp spends in each state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import TYPE_CHECKING

from gemmlab.observe.profile import Profile
from gemmlab.plots.chart import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, YELLOW
from gemmlab.results.climb_rows import short_size

if TYPE_CHECKING:
    import altair as alt

ISSUED, OTHERS = "selected", "others"
_COLOURS = (VERMILION, ORANGE, GREEN, PURPLE, SKY, YELLOW, "#8c6d46")
_SHOWN = len(_COLOURS)
_WIDTH, _BAR = 560, 26
_FLATTENS = 8
"""Ratio of the longest bar to the median above which bars are drawn in percent, because the others would vanish."""
_ROOM = 112
"""End of the axis in percent, beyond 100 so that the labels at the ends of the bars have room."""


@dataclass(frozen=True, slots=True)
class StallBar:
    """The bar of one kernel or library."""

    name: str
    cycles: Mapping[str, float]
    """State -> cycles that a warp spends in it per issued instruction (`Profile.stall_cycles`)."""


def stall_bars(profiles: Sequence[Profile]) -> list[StallBar]:
    """Return a bar for each profile that measured stall cycles, with the size in its name if sizes differ."""
    known = [profile for profile in profiles if profile.stall_cycles]
    several = len({profile.size for profile in known}) > 1
    return [
        StallBar(f"{profile.name} {short_size(profile.size)}" if several else profile.name, profile.stall_cycles)
        for profile in known
    ]


def stall_chart(bars: Sequence[StallBar], *, title: str = "", subtitle: Sequence[str] = ()) -> alt.LayerChart:
    """Draw the bars in the order given; their names must differ.

    The costliest states are shown by name, all others as one. If one bar is much longer than the others, each bar is
    drawn in percent of its own length.
    """
    import altair as alt

    lengths = {bar.name: sum(bar.cycles.values()) for bar in bars}
    whole = max(lengths.values(), default=0.0) > _FLATTENS * median_low(lengths.values() or [0.0])
    scale = {name: 100 / length if whole and length else 1.0 for name, length in lengths.items()}
    axis = "cycles of a warp for one instruction issued"
    totals: dict[str, float] = {}
    for bar in bars:
        for state, cycles in bar.cycles.items():
            totals[state] = totals.get(state, 0.0) + cycles
    ranked = sorted((state for state in totals if state != ISSUED and totals[state]), key=lambda state: -totals[state])
    order = [ISSUED, *ranked[:_SHOWN], *([OTHERS] if len(ranked) > _SHOWN else [])]
    colours = [BLUE, *_COLOURS[: len(ranked)], *(["#bbbbbb"] if len(ranked) > _SHOWN else [])]
    rows = [
        {"name": bar.name, "state": _named(state), "cycles": _cycles(bar, state, order) * scale[bar.name],
         "place": place}
        for bar in bars
        for place, state in enumerate(order)
    ]  # fmt: skip
    labels = [{"name": name, "cycles": length * scale[name], "label": f"{length:.1f}"}
              for name, length in lengths.items()]  # fmt: skip
    names = [bar.name for bar in bars]
    y = alt.Y("name:N", sort=names, title=None, axis=alt.Axis(ticks=False, domain=False))
    stack = alt.Chart(alt.InlineData(values=rows)).mark_bar().encode(
        x=alt.X("cycles:Q", title=["percent of a warp's time", f"(labels: {axis})"] if whole else axis,
                scale=alt.Scale(domain=[0, _ROOM], nice=False) if whole else alt.Undefined), y=y,
        color=alt.Color(
            "state:N", scale=alt.Scale(domain=[_named(state) for state in order], range=colours),
            legend=alt.Legend(title=None, orient="bottom", columns=4),
        ),
        order=alt.Order("place:Q"),
    )  # fmt: skip
    totals_shown = alt.Chart(alt.InlineData(values=labels)).mark_text(align="left", dx=5, fontSize=12)
    return alt.LayerChart(
        layer=[stack, totals_shown.encode(x="cycles:Q", y=y, text="label:N")],
        width=_WIDTH, height=_BAR * len(bars), title=alt.TitleParams(text=title, subtitle=list(subtitle)),
    )  # fmt: skip


def _cycles(bar: StallBar, state: str, order: Sequence[str]) -> float:
    if state == OTHERS:
        return sum(cycles for other, cycles in bar.cycles.items() if other not in order)
    return bar.cycles.get(state, 0.0)


def _named(state: str) -> str:
    return "issued" if state == ISSUED else state.replace("_", " ")
