"""Interactive charts of a page, as Vega-Lite specifications, and their colours.

The page's script fits them to the window and makes dark colours light on a dark background.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gemmlab.core.records import Record
from gemmlab.kernels.catalog import ladder
from gemmlab.plots.chart import BLACK, GFLOPS, ORANGE, PURPLE, SERIES_COLOURS, SKY, TFLOPS, Unit, specification, unit_of
from gemmlab.plots.curves import MANY, Point, bench_points, curve_chart
from gemmlab.plots.gpu_ladder import LARGEST, climb_colour, ladder_at
from gemmlab.plots.ladder import climb_chart, common_size
from gemmlab.results.climb_rows import climb_rows, peaks, short_size

Fit = Literal["curves", "ladder", "fixed"]
PEER_COLOURS = (BLACK, ORANGE, PURPLE, SKY)
_TERA = 4e3
"""Speed of the fastest point in GFLOP/s from which curves are labelled in TFLOP/s."""
_FAINT = 0.08
_CAPTION = (
    "Medians of interleaved samples; bars: middle half. Point at a line to highlight it; click on a name in the legend "
    "to select its line, with Shift to select several."
)


@dataclass(frozen=True, slots=True)
class Drawing:
    """One chart of the page."""

    title: str
    caption: str
    spec: dict[str, Any]
    fit: Fit = "fixed"
    """Method by which the script fits the chart to the available width; `"fixed"` charts are scrolled instead."""


def ladder_drawing(record: Record) -> Drawing | None:
    """Draw the ladder as bars; `None` if the record has no ladder.

    The record of a climb has a bar for each of its entries. That of a bench on a GPU has one for each float32 rung and
    peer at the largest cubic size at which all kernels were timed, if it timed at least three rungs and speeds are in
    GFLOP/s.
    """
    if record.kind == "climb":
        spec = specification(climb_chart(record))
        shown = [row.size for row in climb_rows(record)]
        common = short_size(common_size(shown))
        if len(set(shown)) == 1:
            return Drawing(f"The ladder at {common}", "", _bare(spec), "ladder")
        caption = f"One bar per entry, at the size in its label{f', else at {common}' if common else ''}."
        return Drawing("The ladder", caption, _bare(spec), "ladder")
    order = [kernel.id for kernel in ladder(record.op, "cuda")]
    timed = [r for r in record.results if r.samples and r.contestant.startswith("kernel:")]
    names = {r.contestant for r in timed}
    if len(names & {f"kernel:{name}" for name in order}) < 3 or unit_of(record.op) != GFLOPS:
        return None
    sizes = {r.label: r.flops for r in timed if {x.contestant for x in timed if x.label == r.label} == names}
    cubes = {label: flops for label, flops in sizes.items() if len(set(label.split("x"))) == 1}
    if not cubes:
        return None
    largest = max(cubes, key=lambda label: cubes[label])
    spec = specification(ladder_at(record, order, largest))
    return Drawing(f"The ladder at {short_size(largest)}", "", _bare(spec), "ladder")


def curve_drawings(record: Record) -> Iterator[Drawing]:
    """Yield a chart of speed by size for each thread count with several sizes.

    If there are more than `MANY` sizes, only those up to `LARGEST` are drawn. The record of a climb yields none,
    because it times most entries at one size.
    """
    if record.kind == "climb":
        return
    counts = sorted({result.threads for result in record.results if result.samples})
    for threads in counts:
        points = bench_points(record, threads)
        if len({point.size for point in points}) < 2:
            continue
        many = len({point.size for point in points}) > MANY
        points, colours = _ordered([point for point in points if not many or point.size <= LARGEST], record)
        on = "" if counts == [1] else " on 1 thread" if threads == 1 else f" on {threads} threads"
        chart = curve_chart(
            points, peak=peaks(record).get(threads), unit=_unit(record.op, points), colours=colours,
            cubic=any("x" in result.label for result in record.results),
        )  # fmt: skip
        beyond = f"Sizes up to {LARGEST}; the table has all. " if many else ""
        yield Drawing(f"Speed by size{on}", beyond + _CAPTION, with_hover(_bare(specification(chart))), "curves")


def with_hover(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a specification of curves with interaction added.

    The series nearest to the pointer is highlighted and shows its figures; the legend selects series.
    """
    near = {"name": "near", "select": {"type": "point", "fields": ["series"], "on": "pointerover", "nearest": True,
                                       "clear": "pointerout"}}  # fmt: skip
    chosen = {"name": "chosen", "select": {"type": "point", "fields": ["series"]}, "bind": "legend"}
    layers = []
    for layer in spec["layer"]:
        encoding = dict(layer["encoding"])
        mark = layer["mark"]["type"]
        if encoding.get("color", {}).get("field") == "series":
            full = layer["mark"].get("opacity", 1)
            shown = {"and": [{"param": "chosen"}, {"param": "near"}]}
            encoding["opacity"] = {"condition": {"test": shown, "value": full}, "value": _FAINT}
        if mark == "line":
            encoding["strokeWidth"] = {"condition": {"param": "near", "empty": False, "value": 3.5}, "value": 2}
        if mark == "point" and "color" in encoding:
            encoding["tooltip"] = _tooltip(encoding)
        picks = {"params": [near, chosen]} if "tooltip" in encoding else {}
        layers.append({**layer, **picks, "encoding": encoding})
    return {**spec, "layer": layers}


def _tooltip(encoding: dict[str, Any]) -> list[dict[str, Any]]:
    unit = encoding["y"]["title"]
    return [
        {"field": "series", "type": "nominal", "title": "of"},
        {"field": "size", "type": "quantitative", "title": encoding["x"]["axis"]["title"], "format": ",d"},
        {"field": "speed", "type": "quantitative", "title": unit, "format": ".4~g"},
        {"field": "low", "type": "quantitative", "title": "first quartile", "format": ".4~g"},
        {"field": "high", "type": "quantitative", "title": "third quartile", "format": ".4~g"},
    ]


def _ordered(points: Sequence[Point], record: Record) -> tuple[list[Point], list[str]]:
    """Return the points, ordered by series, and the colours of the series.

    Peers come first, then other contestants, then gemmlab's kernels, the last one in the record first.
    """
    roles = {r.contestant.removesuffix(":best"): r.facts.get("role") for r in record.results}
    names = list(dict.fromkeys(point.series for point in points))
    peers = [name for name in names if roles[name] == "peer"]
    rungs = [name for name in reversed(names) if name.startswith("kernel:")]
    rest = [name for name in names if name not in peers and name not in rungs]
    shades = [climb_colour(1 - place / max(1, len(rungs) - 1)) for place in range(len(rungs))]
    if not rungs:
        colours = list(SERIES_COLOURS)
    else:
        own = [SERIES_COLOURS[place % len(SERIES_COLOURS)] for place in range(len(rest))]
        colours = [*(PEER_COLOURS[place % len(PEER_COLOURS)] for place in range(len(peers))), *own, *shades]
    order = {name: place for place, name in enumerate([*peers, *rest, *rungs])}
    shown = [Point(p.series.removeprefix("kernel:"), p.size, p.speed, p.low, p.high)
             for p in sorted(points, key=lambda p: order[p.series])]  # fmt: skip
    return shown, colours


def _unit(op: str, points: Sequence[Point]) -> Unit:
    unit = unit_of(op)
    return TFLOPS if unit == GFLOPS and max(point.speed for point in points) >= _TERA else unit


def _bare(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the specification without its title, because the page has its own headings."""
    return {key: value for key, value in spec.items() if key != "title"}
