"""Parts of a matrix that the ranks of a mesh have, and the bytes that ranks receive when the layout changes.

A layout is a word (`placements.py`) for each dimension of the mesh. A rank's part is a rectangle.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.distributed.placements import COLUMNS, OTHER, REPLICA, ROWS, SUM

Parts = NDArray[np.int64]
"""A rectangle for each rank: the axes are (rows, columns), (start, stop), and the dimensions of the mesh."""


def parts_of(shape: Sequence[int], layout: Sequence[str], mesh: Sequence[int]) -> Parts:
    """Return all ranks' parts of a matrix, cut as torch cuts: along one dimension of the mesh after another, into parts
    of the same length but for the last ones (`placements.share`).
    """
    found = np.zeros((2, 2, *mesh), np.int64)
    for axis, cut in enumerate((ROWS, COLUMNS)):
        start, stop = found[axis, 0], found[axis, 1]
        stop[...] = shape[axis]
        for dimension, (word, ranks) in enumerate(zip(layout, mesh, strict=True)):
            if word == cut:
                at = np.arange(ranks).reshape([-1 if other == dimension else 1 for other in range(len(mesh))])
                size = -(-(stop - start) // ranks)
                first = start + at * size
                start[...], stop[...] = np.minimum(stop, first), np.minimum(stop, first + size)
    return found


def part_at(parts: Parts, at: Sequence[int]) -> Parts:
    """Return the part of the rank at a place of the mesh."""
    found = parts
    for place in at:
        found = found[:, :, place]
    return found


def overlaps(one: Parts, other: Parts) -> Parts:
    """Return what the rectangles have in common; where that is nothing, `areas` is 0."""
    return np.stack([np.maximum(one[:, 0], other[:, 0]), np.minimum(one[:, 1], other[:, 1])], axis=1)


def areas(parts: Parts) -> NDArray[np.int64]:
    """Return the number of elements of each rectangle."""
    return np.asarray(np.prod(np.maximum(0, parts[:, 1] - parts[:, 0]), axis=0), np.int64)


def stages(before: Sequence[str], into: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the layouts through which a matrix passes, the last one `into`.

    A sum that each rank is to have is first added in parts, so that all ranks have the same bits. Sums over both
    dimensions are added along the second, whose ranks are usually nearer to each other, and then along the first.
    """
    cuts = (ROWS, COLUMNS)
    added = tuple(
        cut if (old, new) == (SUM, REPLICA) else new
        for cut, old, new in zip(cuts, before, into, strict=False)
    )  # fmt: skip
    found = [added] if added == tuple(into) else [added, tuple(into)]
    if tuple(before) == (SUM, SUM) and set(added) == set(cuts):
        return [(SUM, added[1]), *found]
    return found


def addends(before: Sequence[str], into: Sequence[str], mesh: Sequence[int]) -> int:
    """Return how many ranks have a part of the sum of each element that is complete in the layout `into`."""
    pairs = zip(before, into, mesh, strict=True)
    return prod(ranks for old, new, ranks in pairs if old == SUM and new != SUM)


def received_bytes(shape: Sequence[int], before: Sequence[str], into: Sequence[str], mesh: Sequence[int]) -> float:
    """Return the most bytes that a rank receives when a float32 matrix gets another layout (`redistribution.py`).

    If `before` has `placements.OTHER`, a rank is taken to have nothing of what it needs.
    """
    if OTHER in before:
        return float(FLOAT_BYTES * areas(parts_of(shape, into, mesh)).max())
    total, old = np.zeros(tuple(mesh), np.int64), tuple(before)
    for new in stages(before, into):
        needed = parts_of(shape, new, mesh)
        resident = areas(overlaps(parts_of(shape, old, mesh), needed))
        total, old = total + addends(old, new, mesh) * areas(needed) - resident, new
    return float(FLOAT_BYTES * total.max())
