"""A sheet of squared paper: coloured boxes with words, words beside them, lines across. Units are squares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gemmlab.plots.chart import BLACK

if TYPE_CHECKING:
    import altair as alt

BESIDE = "#555555"


@dataclass
class Sheet:
    """Collects marks and draws them in one coordinate system, y downwards."""

    square: float
    """Pixels a unit."""
    tall: float = 1.0
    """Height of a square, in widths."""
    boxes: list[dict[str, Any]] = field(default_factory=list)
    words: list[dict[str, Any]] = field(default_factory=list)
    strokes: list[dict[str, Any]] = field(default_factory=list)

    def box(self, x: float, y: float, kind: str, *, wide: float = 1.0, high: float = 1.0) -> None:
        """A filled box whose upper left corner is given; `kind` decides its colour."""
        self.boxes.append({"x": x, "y": y, "x2": x + wide, "y2": y + high, "kind": kind})

    def word(
        self, x: float, y: float, text: str, *, size: float = 11.0, align: str = "center", colour: str = BLACK
    ) -> None:
        """Text about a point."""
        self.words.append({"x": x, "y": y, "text": text, "size": size, "align": align, "colour": colour})

    def stroke(
        self, x: float, y: float, x2: float, y2: float, colour: str = BLACK, *, width: float = 1.0, opacity: float = 1.0
    ) -> None:
        """A straight line."""
        self.strokes.append({"x": x, "y": y, "x2": x2, "y2": y2, "colour": colour, "width": width, "opacity": opacity})

    def frame(self, x: float, y: float, wide: float, high: float, colour: str = BLACK, *, width: float = 1.0) -> None:
        """The outline of a box."""
        for line in (
            (x, y, x + wide, y), (x, y + high, x + wide, y + high),
            (x, y, x, y + high), (x + wide, y, x + wide, y + high),
        ):  # fmt: skip
            self.stroke(*line, colour, width=width)

    def chart(
        self, colours: Mapping[str, str], legend: str | None = None, *, gap: float = 0.5, hidden: bool = False
    ) -> alt.LayerChart:
        """Everything: boxes below, lines over them, words on top. `colours` of the kinds in the order of the legend.

        `gap`: white pixels between boxes; `hidden`: no legend.
        """
        from altair.utils.schemapi import debug_mode

        # Altair compares each of a chart's parts with the whole schema: most of the time that it takes.
        with debug_mode(False):
            return self._chart(colours, legend, gap, hidden)

    def _chart(self, colours: Mapping[str, str], legend: str | None, gap: float, hidden: bool) -> alt.LayerChart:
        import altair as alt

        marks = [*self.boxes, *self.strokes, *self.words]
        ends = [(mark.get(f"{axis}2", mark[axis]), mark[axis]) for axis in "xy" for mark in marks]
        half = len(marks)
        (left, right), (top, bottom) = (
            (min(map(min, part)), max(map(max, part))) for part in (ends[:half], ends[half:])
        )

        def place(axis: str, low: float, high: float) -> Any:
            make = alt.X if axis == "x" else alt.Y
            domain = [low, high] if axis == "x" else [high, low]
            return make(f"{axis}:Q", axis=None, scale=alt.Scale(domain=domain, nice=False, zero=False))

        x, y = place("x", left, right), place("y", top, bottom)
        shown = [kind for kind in colours if any(box["kind"] == kind for box in self.boxes)]
        look = alt.Legend(title=legend, orient="bottom", columns=6, symbolType="square")
        colour = alt.Color(
            "kind:N", scale=alt.Scale(domain=shown, range=[colours[kind] for kind in shown]),
            legend=None if hidden or not shown else look,
        )  # fmt: skip
        layers: list[alt.Chart] = []
        if self.boxes:
            rects = alt.Chart(alt.InlineData(values=self.boxes)).mark_rect(stroke="white", strokeWidth=gap, aria=False)
            layers.append(rects.encode(x=x, y=y, x2=alt.X2("x2:Q"), y2=alt.Y2("y2:Q"), color=colour))
        for line in sorted({(s["colour"], s["width"], s["opacity"]) for s in self.strokes}):
            lines = [
                {name: s[name] for name in ("x", "y", "x2", "y2")}
                for s in self.strokes
                if (s["colour"], s["width"], s["opacity"]) == line
            ]
            rule = alt.Chart(alt.InlineData(values=lines)).mark_rule(
                color=line[0], strokeWidth=line[1], opacity=line[2], aria=False
            )
            layers.append(rule.encode(x=x, y=y, x2=alt.X2("x2:Q"), y2=alt.Y2("y2:Q")))
        for type_ in sorted({(w["colour"], w["size"], w["align"]) for w in self.words}):
            words = [
                {name: w[name] for name in ("x", "y", "text")}
                for w in self.words
                if (w["colour"], w["size"], w["align"]) == type_
            ]
            text = alt.Chart(alt.InlineData(values=words)).mark_text(
                color=type_[0], fontSize=type_[1], align=type_[2], baseline="middle", aria=False
            )
            layers.append(text.encode(x=x, y=y, text=alt.Text("text:N")))
        return alt.LayerChart(
            layer=layers,
            width=max(1, round((right - left) * self.square)),
            height=max(1, round((bottom - top) * self.square * self.tall)),
        )
