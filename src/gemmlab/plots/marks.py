"""Forty-four different shapes of marks: Vega's own, then other outlines as SVG paths, then all of these with a hole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import cycle, islice

Outline = Sequence[tuple[float, float]]
"""Corners of a polygon in the square from -1 to 1, clockwise on the screen, y downwards."""
_NAMED = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left", "triangle-right")
_HOLE = 0.5
"""Size of a hole divided by the size of its outline."""


def _star(points: int, inner: float, turn: float = 0.0) -> Outline:
    """Return a star. Its outer corners are at a distance of 1 from the centre, its inner ones at `inner`."""
    steps = [(turn + index / (2 * points), inner if index % 2 else 1.0) for index in range(2 * points)]
    return [(r * math.sin(2 * math.pi * part), -r * math.cos(2 * math.pi * part)) for part, r in steps]


def _polygon(corners: int, turn: float = 0.0) -> Outline:
    return [(math.sin(2 * math.pi * (turn + i / corners)), -math.cos(2 * math.pi * (turn + i / corners)))
            for i in range(corners)]  # fmt: skip


_LIKE_NAMED: Sequence[Outline] = (
    _polygon(24), _polygon(4, 1 / 8), _polygon(3), _polygon(4), _star(4, 0.35), _polygon(3, 1 / 2), _polygon(3, -1 / 4),
    _polygon(3, 1 / 4),
)  # fmt: skip
"""Outlines like the shapes in `_NAMED`, used only with a hole."""
_OTHERS: Sequence[Outline] = (
    _star(5, 0.4), _polygon(6), _star(4, 0.35, 1 / 8), _polygon(5), _star(3, 0.3),
    [(-1, -0.35), (1, -0.35), (1, 0.35), (-1, 0.35)], [(-0.35, -1), (0.35, -1), (0.35, 1), (-0.35, 1)], _star(8, 0.6),
    _star(6, 0.5), _star(3, 0.3, 1 / 2), _polygon(5, 1 / 2), _star(2, 0.35, 1 / 8),
    _star(2, 0.35, 3 / 8), _star(5, 0.4, 1 / 2),
)  # fmt: skip


def marks(count: int) -> list[str]:
    """Return the shapes of `count` marks. Up to 44 all differ; further ones repeat them."""
    holes = [_path(outline) + _path(_inside(outline)) for outline in (*_LIKE_NAMED, *_OTHERS)]
    return list(islice(cycle([*_NAMED, *map(_path, _OTHERS), *holes]), count))


def _inside(outline: Outline) -> Outline:
    """Return the outline of the hole: smaller, and with opposite orientation, so that it is not filled."""
    return [(_HOLE * x, _HOLE * y) for x, y in reversed(outline)]


def _path(outline: Outline) -> str:
    return "M" + "L".join(f"{x:.3f},{y:.3f}" for x, y in outline) + "Z"
