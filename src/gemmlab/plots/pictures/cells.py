"""Maps of a matrix: who owns which element, as rectangles of neighbours, drawn to fill a panel."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from gemmlab.plots.chart import BLACK
from gemmlab.plots.gpu_ladder import climb_colour
from gemmlab.plots.pictures.sheet import BESIDE, Sheet

if TYPE_CHECKING:
    import altair as alt

Owner = TypeVar("Owner", bound=Hashable)
PALE = "#e3e6ea"
_LETTER, _LINE = 5.1, 10
"""Pixels that a small letter and a line take."""


@dataclass(frozen=True, slots=True)
class Piece(Generic[Owner]):
    """A rectangle of elements with one owner."""

    owner: Owner
    row: int
    col: int
    rows: int
    cols: int


def pieces(owners: Mapping[tuple[int, int], Owner]) -> list[Piece[Owner]]:
    """Elements (row, column) as rectangles: runs along rows, equal runs below each other as one."""
    runs: dict[tuple[int, int, Owner], list[int]] = {}
    last: tuple[int, int, Owner] | None = None
    for row, col in sorted(owners):
        owner = owners[row, col]
        if last is not None and last[2] == owner and runs[last][-1] == row and last[1] == col:
            first = last[0]
            runs[last].pop()
            if not runs[last]:
                del runs[last]
            last = (first, col + 1, owner)
        else:
            last = (col, col + 1, owner)
        runs.setdefault(last, []).append(row)
    found = []
    for (first, end, owner), rows in runs.items():
        start = rows[0]
        for row, following in zip(rows, [*rows[1:], -1], strict=True):
            if following != row + 1:
                found.append(Piece(owner, start, first, row + 1 - start, end - first))
                start = following
    return sorted(found, key=lambda piece: (piece.row, piece.col))


@dataclass(frozen=True, slots=True)
class Area:
    """Part of a matrix that a panel shows."""

    row: int
    col: int
    rows: int
    cols: int

    @staticmethod
    def around(cells: Iterable[tuple[int, int]]) -> Area:
        """The smallest one that holds all."""
        rows, cols = zip(*cells, strict=True)
        low, left = min(rows), min(cols)
        return Area(low, left, max(rows) + 1 - low, max(cols) + 1 - left)

    def holds(self, cell: tuple[int, int]) -> bool:
        """Whether an element lies in it."""
        return 0 <= cell[0] - self.row < self.rows and 0 <= cell[1] - self.col < self.cols


@dataclass(frozen=True, slots=True)
class Patch:
    """A rectangle as it is drawn."""

    piece: Piece[str]
    colour: str
    word: str = ""
    ink: str = "white"


def panel(title: str, area: Area, patches: Sequence[Patch], size: tuple[int, int]) -> alt.LayerChart:
    """Rectangles of a part of a matrix, stretched to `size` pixels; words where there is room for them."""
    wide, high = size[0] / area.cols, size[1] / area.rows
    sheet = Sheet(square=wide, tall=high / wide)
    for patch in patches:
        piece = patch.piece
        x, y = piece.col - area.col, piece.row - area.row
        sheet.box(x, y, patch.colour, wide=piece.cols, high=piece.rows)
        if len(patch.word) * _LETTER + 1 <= piece.cols * wide and piece.rows * high >= _LINE:
            sheet.word(x + piece.cols / 2, y + piece.rows / 2, patch.word, size=9, colour=patch.ink)
    sheet.frame(0, 0, area.cols, area.rows, "#888888", width=0.8)
    sheet.word(0, -22 / high, title, size=12, align="left")
    for x, align, column in ((0.0, "left", area.col), (area.cols, "right", area.col + area.cols - 1)):
        sheet.word(x, -7 / high, str(column), size=10, align=align, colour=BESIDE)
    for y, row in ((6 / high, area.row), (area.rows - 6 / high, area.row + area.rows - 1)):
        sheet.word(-4 / wide, y, str(row), size=10, align="right", colour=BESIDE)
    # Panels below each other begin at the same place, whatever the numbers beside them are.
    sheet.word(-34 / wide, 0, " ", size=10)
    return sheet.chart({patch.colour: patch.colour for patch in patches}, hidden=True)


def side_by_side(*panels: alt.LayerChart) -> alt.HConcatChart:
    """Panels in a row, each with colours of its own."""
    import altair as alt

    return alt.hconcat(*panels, spacing=12).resolve_scale(color="independent")


def below_each_other(*rows: alt.LayerChart | alt.HConcatChart) -> alt.VConcatChart:
    """The same downwards."""
    import altair as alt

    return alt.vconcat(*rows, spacing=18).resolve_scale(color="independent")


def lane_colour(lane: int, lanes: int = 32) -> str:
    """From dark to light with the number."""
    return climb_colour(lane / max(1, lanes - 1))


def ink_on(place: float) -> str:
    """The colour of words on `climb_colour(place)`."""
    return BLACK if place > 0.6 else "white"


def ranges(numbers: Iterable[int]) -> str:
    """`0-3, 8`."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
