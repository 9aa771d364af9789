"""Write a chart as SVG, PNG or self-contained HTML, by the file's suffix, in a common style."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from gemmlab.core.errors import UsageError
from gemmlab.core.notebook_view import Display, View
from gemmlab.ops import catalog, op
from gemmlab.ops.op import LIMITS
from gemmlab.plots.bundle import vega_bundle

if TYPE_CHECKING:
    import altair as alt

    Chart: TypeAlias = "alt.LayerChart | alt.VConcatChart | alt.HConcatChart | VegaChart"

# Okabe and Ito's palette: distinguishable with any kind of colour vision, and by lightness in grey.
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, YELLOW, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000",
)  # fmt: skip
SERIES_COLOURS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK)

PNG_SCALE = 2.0


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit in which a chart shows speeds."""

    name: str
    of_op: str
    """Unit of the operation (`Op.unit`) in which speeds are given."""
    times: float = 1.0
    """Number of `of_op` units in one unit of the chart."""

    @property
    def limit(self) -> str:
        """Name of the limit of speeds in this unit, such as `"FMA peak"`."""
        return LIMITS[self.of_op]


GFLOPS, TFLOPS = Unit(op.GFLOPS, op.GFLOPS), Unit("TFLOP/s", op.GFLOPS, 1e3)


def unit_of(op_name: str) -> Unit:
    """Return the unit in which charts show an operation's speeds."""
    unit = catalog.unit_of(op_name)
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


@dataclass(frozen=True, slots=True, repr=False)
class VegaChart(Display):
    """A chart of many marks, written directly in Vega-Lite, because Altair would copy its data several times."""

    spec: dict[str, Any]

    def _line(self) -> str:
        title = self.spec.get("title", "")
        return str(title.get("text", "") if isinstance(title, dict) else title) or "without a title"

    def _view(self) -> View:
        return View(self._line(), images=((svg(self), self._line()),))


def specification(chart: Chart) -> dict[str, Any]:
    """Return the chart's Vega-Lite specification with the common style `CONFIG`."""
    if isinstance(chart, VegaChart):
        return {"$schema": _SCHEMA, **chart.spec, "config": CONFIG}
    # Validation against the whole schema takes longer than everything else.
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec["config"] = CONFIG
    return spec


def _html(spec: dict[str, Any]) -> str:
    # Escape "<", so that no name in the data can close the script element.
    safe = json.dumps(spec).replace("<", "\\u003c")
    return _PAGE.format(bundle=vega_bundle(), spec=safe)


def render(spec: dict[str, Any], suffix: str) -> bytes:
    """Return the contents of an `.svg`, `.png` (two pixels per unit) or self-contained `.html` file of a specification.

    Raises `UsageError` for any other suffix.
    """
    import vl_convert

    if suffix == ".svg":
        return str(vl_convert.vegalite_to_svg(spec)).encode()
    if suffix == ".png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=PNG_SCALE))
    if suffix == ".html":
        return _html(spec).encode()
    raise UsageError(f"no chart format {suffix!r}; use .svg, .png or .html")


def svg(chart: Chart) -> bytes:
    """Return the chart as the contents of an SVG file."""
    return render(specification(chart), ".svg")


def save(chart: Chart, *paths: Path) -> None:
    """Write one chart to each path, in the format of the path's suffix. Raises `UsageError` for an unknown suffix."""
    spec = specification(chart)
    for path in paths:
        path.write_bytes(render(spec, path.suffix))
