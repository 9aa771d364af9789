"""One specification, three files: a chart is written as SVG, PNG or self-contained HTML by its suffix."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from gemmlab.core.errors import UsageError
from gemmlab.ops import op
from gemmlab.ops.catalog import find_op
from gemmlab.ops.op import LIMITS
from gemmlab.plots.bundle import vega_bundle

if TYPE_CHECKING:
    import altair as alt

    Chart: TypeAlias = "alt.LayerChart | alt.VConcatChart | alt.HConcatChart | Written"

# Okabe and Ito's palette: told apart with any kind of colour vision, and by lightness in grey.
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, YELLOW, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000",
)  # fmt: skip
SERIES_COLOURS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK)

PNG_SCALE = 2.0


@dataclass(frozen=True, slots=True)
class Unit:
    """What speeds are shown in."""

    name: str
    of_op: str
    """The operations' unit (`Op.unit`) that speeds come in,"""
    times: float = 1.0
    """and how many of it are one of this."""

    @property
    def limit(self) -> str:
        """What bounds such a speed, `"FMA peak"`."""
        return LIMITS[self.of_op]


GFLOPS, TFLOPS = Unit(op.GFLOPS, op.GFLOPS), Unit("TFLOP/s", op.GFLOPS, 1e3)


def unit_of(op_name: str) -> Unit:
    """What an operation's speeds are shown in."""
    unit = find_op(op_name).unit
    return Unit(unit, unit)


CONFIG: dict[str, Any] = {
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "background": "white",
    "padding": 12,
    "axis": {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "gridColor": "#e6e6e6",
        "domainColor": "#888888",
        "tickColor": "#888888",
        "labelLimit": 260,
    },
    "legend": {"labelFontSize": 12, "titleFontSize": 12, "labelLimit": 320},
    "title": {"fontSize": 15, "subtitleFontSize": 12, "subtitleColor": "#444444", "anchor": "start", "offset": 12},
    "view": {"stroke": None},
}

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>gemmlab</title></head>
<body><div id="chart"></div>
<script>{bundle}</script>
<script>vegaEmbed("#chart", {spec}, {{"actions": false, "renderer": "svg"}});</script>
</body></html>
"""


@dataclass(frozen=True, slots=True)
class Written:
    """A chart of many marks, written as Vega-Lite at once: Altair copies all of its data several times."""

    spec: dict[str, Any]


def specification(chart: Chart) -> dict[str, Any]:
    """The chart's Vega-Lite specification with the house style."""
    if isinstance(chart, Written):
        return {"$schema": _SCHEMA, **chart.spec, "config": CONFIG}
    # Not compared with the whole schema again, which takes longer than all the rest.
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec["config"] = CONFIG
    return spec


def _html(spec: dict[str, Any]) -> str:
    # "<" never reaches the page from data, so that no name can close the script element.
    safe = json.dumps(spec).replace("<", "\\u003c")
    return _PAGE.format(bundle=vega_bundle(), spec=safe)


def render(spec: dict[str, Any], suffix: str) -> bytes:
    """A specification as the bytes of an `.svg`, `.png` (two pixels a unit) or `.html` file; `UsageError` otherwise."""
    import vl_convert

    if suffix == ".svg":
        return str(vl_convert.vegalite_to_svg(spec)).encode()
    if suffix == ".png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=PNG_SCALE))
    if suffix == ".html":
        return _html(spec).encode()
    raise UsageError(f"no chart format {suffix!r}; use .svg, .png or .html")


def save(chart: Chart, *paths: Path) -> None:
    """Write one chart to each path, in the format its suffix says."""
    spec = specification(chart)
    for path in paths:
        path.write_bytes(render(spec, path.suffix))
