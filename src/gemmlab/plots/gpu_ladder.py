"""Charts of the GPU's ladder: the speed of every rung by size, and of all rungs at one size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gemmlab.core.precision import FLOAT32
from gemmlab.core.records import Record, Result
from gemmlab.core.stats import spread
from gemmlab.plots.chart import BLACK, TFLOPS
from gemmlab.plots.curves import Point, curve_chart
from gemmlab.plots.ladder import Bar, ladder_chart, no_heading

if TYPE_CHECKING:
    import altair as alt

# From the first rung to the last: dark to light, so that the order is visible in grey, too.
CLIMB = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (205, 185, 10))
LARGEST = 4096
"""Largest n of a product n x n x n on the axis; speeds at larger sizes change little and would take half of a linear
axis.
"""


def rungs_by_size(record: Record, order: Sequence[str], vendor: str = "cublas") -> alt.LayerChart:
    """Draw the vendor's library in black, then one line per rung, the last rung first; cubic sizes up to `LARGEST`.

    `order` lists the ids of the rungs from first to last, `vendor` is the library's contestant name. Rungs that the
    record lacks are left out.
    """
    names = [name for name in reversed(order) if any(r.contestant == f"kernel:{name}" for r in record.results)]
    points = [
        Point(name, int(result.label.split("x")[0]), _gflops(result))
        for name in (vendor, *names)
        for result in record.results
        if result.samples and _name(result) == name and len(set(result.label.split("x"))) == 1
    ]
    points = [point for point in points if point.size <= LARGEST]
    shades = [climb_colour(place / max(1, len(names) - 1)) for place in range(len(names))]
    return curve_chart(
        points, title=f"Speed by size on {record.device.get('name')}", unit=TFLOPS,
        subtitle=["Medians of turns taken side by side; rungs in their reference configurations"],
        colours=[BLACK, *reversed(shades)],
    )  # fmt: skip


def ladder_at(record: Record, order: Sequence[str], label: str) -> alt.VConcatChart:
    """Draw the float32 rungs of `order`, then all float32 peers, at the size `label` as bars.

    A line shows the FMA peak if the record has a probe of it at this size.
    """
    plain = [result for result in record.results if result.facts.get("precision", FLOAT32) == FLOAT32]
    here = {_name(result): result for result in plain if result.label == label and result.samples}
    peak = _gflops(here["probe"]) if "probe" in here else 0.0
    peers = [name for name, result in here.items() if result.facts.get("role") == "peer"]
    bars = [
        Bar(name, "peer" if name in peers else "rung", 1, speed, label, speed / peak if peak else None)
        for name in (*order, *peers)
        if name in here
        for speed in (_gflops(here[name]),)
    ]
    return ladder_chart(
        bars, {1: peak}, title=f"The climb on {record.device.get('name')}", unit=TFLOPS, heading=no_heading,
        subtitle=["Medians of turns taken side by side"],
    )  # fmt: skip


def climb_colour(height: float) -> str:
    """Return the colour, such as `"#440154"`, of a height on the ladder, from 0 (first rung) to 1 (last rung)."""
    place = min(max(height, 0.0), 1.0) * (len(CLIMB) - 1)
    low = min(int(place), len(CLIMB) - 2)
    mixed = (round(a + (b - a) * (place - low)) for a, b in zip(CLIMB[low], CLIMB[low + 1], strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _name(result: Result) -> str:
    """Return the contestant's name without `kernel:`: the id of a rung, with its configuration if not the reference."""
    return result.contestant.removeprefix("kernel:")


def _gflops(result: Result) -> float:
    return result.flops / spread([sample.time_us for sample in result.samples]).median / 1e3
