"""Plots with units of their own on a sheet of pixels, and matrices on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gemmlab.plots.chart import BLACK, Written
from gemmlab.plots.pictures.cells import Area, Piece
from gemmlab.plots.pictures.sheet import BESIDE, Sheet

_LETTER, _LINE = 5.1, 10
"""Pixels that a small letter and a line take."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A rectangle as it is drawn."""

    piece: Piece[str]
    colour: str
    word: str = ""
    ink: str = "white"


@dataclass(frozen=True, slots=True)
class Plot:
    """A part of a sheet of pixels with units of its own: many plots make one chart, which is quickly drawn."""

    sheet: Sheet
    left: float
    top: float
    """Pixels; where its origin lies."""
    wide: float
    high: float
    """Pixels that a unit is."""

    def box(self, x: float, y: float, kind: str, *, wide: float = 1.0, high: float = 1.0) -> None:
        """As `Sheet.box`."""
        size = {"wide": round(wide * self.wide, 1), "high": round(high * self.high, 1)}
        self.sheet.box(round(self.left + x * self.wide, 1), round(self.top + y * self.high, 1), kind, **size)

    def word(
        self, x: float, y: float, text: str, *, dx: float = 0.0, dy: float = 0.0, size: float = 9.0,
        align: str = "center", colour: str = BESIDE,
    ) -> None:  # fmt: skip
        """Text, moved by `dx` and `dy` pixels."""
        place = (round(self.left + x * self.wide + dx, 1), round(self.top + y * self.high + dy, 1))
        self.sheet.word(*place, text, size=size, align=align, colour=colour)

    def stroke(self, x: float, y: float, x2: float, y2: float, colour: str = BLACK, *, width: float = 1.0) -> None:
        """As `Sheet.stroke`."""
        ends = (x * self.wide, y * self.high, x2 * self.wide, y2 * self.high)
        across, down = ends[0::2], ends[1::2]
        self.sheet.stroke(
            self.left + across[0], self.top + down[0], self.left + across[1], self.top + down[1], colour, width=width
        )

    def frame(self, wide: float, high: float) -> None:
        """A thin outline from the origin on."""
        size = (wide * self.wide, high * self.high)
        self.sheet.frame(self.left, self.top, *size, "#888888", width=0.8)

    def title(self, text: str, above: float = 22.0) -> None:
        """Over the plot's left edge."""
        self.word(0, 0, text, dy=-above, size=12, align="left", colour=BLACK)


def panel(
    sheet: Sheet,
    place: tuple[float, float],
    size: tuple[float, float],
    title: str,
    area: Area,
    patches: Iterable[Patch],
) -> None:
    """Rectangles of a part of a matrix, stretched to `size` pixels; words where there is room for them."""
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


def finished(sheet: Sheet, colours: Mapping[str, str] | None = None) -> Written:
    """The chart of a sheet of pixels; without names for its colours, boxes are named by their colours."""
    kinds = {box["kind"]: box["kind"] for box in sheet.boxes}
    return sheet.chart(colours or kinds, gap=0.5, hidden=colours is None)
