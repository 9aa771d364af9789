"""A drawing surface for coloured boxes, words and lines, like squared paper: the unit is the side of a square."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gemmlab.plots.chart import BLACK, VegaChart

BESIDE = "#555555"


@dataclass
class Sheet:
    """A collection of boxes, words and lines, drawn in one coordinate system, y downwards."""

    square: float
    """Width of a square in pixels."""
    tall: float = 1.0
    """Height of a square relative to its width."""
    boxes: list[dict[str, Any]] = field(default_factory=list)
    words: list[dict[str, Any]] = field(default_factory=list)
    strokes: list[dict[str, Any]] = field(default_factory=list)

    def box(self, x: float, y: float, kind: str, *, wide: float = 1.0, high: float = 1.0) -> None:
        """Add a filled box with its upper left corner at (`x`, `y`); `kind` determines its colour."""
        self.boxes.append({"x": x, "y": y, "x2": x + wide, "y2": y + high, "kind": kind})

    def word(
        self, x: float, y: float, text: str, *, size: float = 11.0, align: str = "center", colour: str = BLACK
    ) -> None:
        """Add text at a point."""
        self.words.append({"x": x, "y": y, "text": text, "size": size, "align": align, "colour": colour})

    def stroke(
        self, x: float, y: float, x2: float, y2: float, colour: str = BLACK, *, width: float = 1.0, opacity: float = 1.0
    ) -> None:
        """Add a straight line."""
        self.strokes.append({"x": x, "y": y, "x2": x2, "y2": y2, "colour": colour, "width": width, "opacity": opacity})

    def frame(self, x: float, y: float, wide: float, high: float, colour: str = BLACK, *, width: float = 1.0) -> None:
        """Add the outline of a box."""
        for line in (
            (x, y, x + wide, y), (x, y + high, x + wide, y + high),
            (x, y, x, y + high), (x + wide, y, x + wide, y + high),
        ):  # fmt: skip
            self.stroke(*line, colour, width=width)

    def chart(
        self, colours: Mapping[str, str], legend: str | None = None, *, gap: float = 0.5, hidden: bool = False
    ) -> VegaChart:
        """Return the chart: boxes below, lines over them, words on top.

        `colours` maps kinds to colours in the order of the legend, `legend` is its title, `gap` is the number of white
        pixels between boxes, and `hidden` omits the legend. Kinds that no box has are left out.
        """
        marks = [*self.boxes, *self.strokes, *self.words]
        left, right, top, bottom = _bounds(marks)
        shown = [kind for kind in colours if any(box["kind"] == kind for box in self.boxes)]
        place = {"x": _axis("x", [left, right]), "y": _axis("y", [bottom, top])}
        ends = {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
        look = {"title": legend, "orient": "bottom", "columns": 6, "symbolType": "square"}
        colour = {
            "field": "kind", "type": "nominal", "legend": None if hidden or not shown else look,
            "scale": {"domain": shown, "range": [colours[kind] for kind in shown]},
        }  # fmt: skip
        layers = []
        if self.boxes:
            mark = {"type": "rect", "stroke": "white", "strokeWidth": gap}
            layers.append(_layer(mark, {**place, **ends, "color": colour}, self.boxes))
        for (ink, width, opacity), lines in _alike(self.strokes, "colour", "width", "opacity"):
            mark = {"type": "rule", "color": ink, "strokeWidth": width, "opacity": opacity}
            layers.append(_layer(mark, {**place, **ends}, lines))
        for (ink, size, align), words in _alike(self.words, "colour", "size", "align"):
            mark = {"type": "text", "color": ink, "fontSize": size, "align": align, "baseline": "middle"}
            layers.append(_layer(mark, {**place, "text": {"field": "text", "type": "nominal"}}, words))
        width, height = (right - left) * self.square, (bottom - top) * self.square * self.tall
        return VegaChart({"layer": layers, "width": max(1, round(width)), "height": max(1, round(height))})


def _bounds(marks: Sequence[Mapping[str, Any]]) -> tuple[float, float, float, float]:
    """Return the left, right, top and bottom of all marks."""
    across, down = ([end for mark in marks for end in (mark[axis], mark.get(f"{axis}2", mark[axis]))] for axis in "xy")
    return min(across), max(across), min(down), max(down)


def _axis(name: str, domain: list[float]) -> dict[str, Any]:
    return {
        "field": name, "type": "quantitative", "axis": None, "scale": {"domain": domain, "nice": False, "zero": False},
    }  # fmt: skip


def _layer(mark: dict[str, Any], encoding: dict[str, Any], values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"mark": {**mark, "aria": False}, "encoding": encoding, "data": {"values": values}}


def _alike(marks: Iterable[Mapping[str, Any]], *look: str) -> list[tuple[tuple[Any, ...], list[dict[str, Any]]]]:
    """Return the marks in groups that can share a layer, as (values of the keys `look`, marks without these keys)."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for mark in marks:
        values = {name: value for name, value in mark.items() if name not in look}
        found.setdefault(tuple(mark[name] for name in look), []).append(values)
    return sorted(found.items(), key=lambda group: group[0])
