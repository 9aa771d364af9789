"""Plots with their own units on a sheet whose unit is a pixel, and panels that show matrices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gemmlab.plots.chart import BLACK, VegaChart
from gemmlab.plots.pictures.owners import Area, Piece
from gemmlab.plots.pictures.sheet import BESIDE, Sheet

_LETTER, _LINE = 5.1, 10
"""Width of a small letter and height of a line, in pixels."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A rectangle with its colour and text."""

    piece: Piece[str]
    colour: str
    word: str = ""
    ink: str = "white"


@dataclass(frozen=True, slots=True)
class Plot:
    """A part of a sheet of pixels, with its own units. Many plots make up one chart, which renders fast."""

    sheet: Sheet
    left: float
    top: float
    """`left`, `top`: origin of the plot on the sheet, in pixels."""
    wide: float
    high: float
    """`wide`, `high`: pixels per unit."""

    def box(self, x: float, y: float, kind: str, *, wide: float = 1.0, high: float = 1.0) -> None:
        """Draw a box as `Sheet.box` does, in the plot's units."""
        size = {"wide": round(wide * self.wide, 1), "high": round(high * self.high, 1)}
        self.sheet.box(round(self.left + x * self.wide, 1), round(self.top + y * self.high, 1), kind, **size)

    def word(
        self, x: float, y: float, text: str, *, dx: float = 0.0, dy: float = 0.0, size: float = 9.0,
        align: str = "center", colour: str = BESIDE,
    ) -> None:  # fmt: skip
        """Write text at a point in the plot's units, moved by `dx` and `dy` pixels."""
        place = (round(self.left + x * self.wide + dx, 1), round(self.top + y * self.high + dy, 1))
        self.sheet.word(*place, text, size=size, align=align, colour=colour)

    def stroke(self, x: float, y: float, x2: float, y2: float, colour: str = BLACK, *, width: float = 1.0) -> None:
        """Draw a line as `Sheet.stroke` does, in the plot's units."""
        ends = (x * self.wide, y * self.high, x2 * self.wide, y2 * self.high)
        across, down = ends[0::2], ends[1::2]
        self.sheet.stroke(
            self.left + across[0], self.top + down[0], self.left + across[1], self.top + down[1], colour, width=width
        )

    def frame(self, wide: float, high: float) -> None:
        """Draw a thin outline of a box at the origin."""
        size = (wide * self.wide, high * self.high)
        self.sheet.frame(self.left, self.top, *size, "#888888", width=0.8)

    def title(self, text: str, above: float = 22.0) -> None:
        """Write a title over the plot, from its left edge."""
        self.word(0, 0, text, dy=-above, size=12, align="left", colour=BLACK)


def panel(
    sheet: Sheet,
    place: tuple[float, float],
    size: tuple[float, float],
    title: str,
    area: Area,
    patches: Iterable[Patch],
) -> None:
    """Draw the part `area` of a matrix as `patches`, with their words if they fit.

    `place` is its upper left corner and `size` its width and height, both in pixels. The first and last row and column
    are numbered.
    """
    plot = Plot(sheet, *place, size[0] / area.cols, size[1] / area.rows)
    for patch in patches:
        piece = patch.piece
        x, y = piece.col - area.col, piece.row - area.row
        plot.box(x, y, patch.colour, wide=piece.cols, high=piece.rows)
        if len(patch.word) * _LETTER + 1 <= piece.cols * plot.wide and piece.rows * plot.high >= _LINE:
            plot.word(x + piece.cols / 2, y + piece.rows / 2, patch.word, colour=patch.ink)
    plot.frame(area.cols, area.rows)
    plot.title(title)
    for x, align, column in ((0, "left", area.col), (area.cols, "right", area.col + area.cols - 1)):
        plot.word(x, 0, str(column), dy=-7, size=10, align=align)
    for y, dy, row in ((0, 6, area.row), (area.rows, -6, area.row + area.rows - 1)):
        plot.word(0, y, str(row), dx=-4, dy=dy, size=10, align="right")


def finished(sheet: Sheet, colours: Mapping[str, str] | None = None) -> VegaChart:
    """Return the chart of a sheet of pixels.

    Without `colours`, the kinds of the boxes are their colours, and there is no legend.
    """
    kinds = {box["kind"]: box["kind"] for box in sheet.boxes}
    return sheet.chart(colours or kinds, gap=0.5, hidden=colours is None)
