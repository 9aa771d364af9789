"""Maps of a matrix that assign an owner to each element, as rectangles with one owner; and the colours of owners."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from gemmlab.plots.chart import BLACK
from gemmlab.plots.gpu_ladder import climb_colour

Owner = TypeVar("Owner", bound=Hashable)
_MOST_PIECES = 160
"""Most rectangles that a plot can show distinctly."""


@dataclass(frozen=True, slots=True)
class Piece(Generic[Owner]):
    """A rectangle of elements with one owner."""

    owner: Owner
    row: int
    col: int
    rows: int
    cols: int


def pieces(owners: Mapping[tuple[int, int], Owner]) -> list[Piece[Owner]]:
    """Merge elements (row, column) into rectangles of one owner: runs along rows, then equal runs of adjacent rows."""
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
    """A rectangular part of a matrix, which a panel shows."""

    row: int
    col: int
    rows: int
    cols: int

    @staticmethod
    def around(cells: Iterable[tuple[int, int]]) -> Area:
        """Return the smallest area that contains all `cells` (row, column)."""
        rows, cols = zip(*cells, strict=True)
        low, left = min(rows), min(cols)
        return Area(low, left, max(rows) + 1 - low, max(cols) + 1 - left)

    def holds(self, cell: tuple[int, int]) -> bool:
        """Return True if the area contains the element (row, column)."""
        return 0 <= cell[0] - self.row < self.rows and 0 <= cell[1] - self.col < self.cols


def crowded(owners: Mapping[tuple[int, int], Owner]) -> Area:
    """Return the area of the elements, or only an upper left part of it with at most `_MOST_PIECES` `pieces`."""
    area = Area.around(owners)
    while len(pieces({cell: who for cell, who in owners.items() if area.holds(cell)})) > _MOST_PIECES:
        halved = (area.rows, -(-area.cols // 2)) if area.cols >= area.rows else (-(-area.rows // 2), area.cols)
        area = Area(area.row, area.col, *halved)
    return area


def lane_colour(lane: int, lanes: int = 32) -> str:
    """Return the colour of a lane; a higher number has a lighter colour."""
    return climb_colour(lane / max(1, lanes - 1))


def ink_on(place: float) -> str:
    """Return a legible text colour on the background `climb_colour(place)`."""
    return BLACK if place > 0.6 else "white"


def ranges(numbers: Iterable[int]) -> str:
    """Return the numbers as text with ranges, such as `0-3, 8`."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
