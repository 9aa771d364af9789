"""Placements of a matrix in words, and the range that a rank has of an extent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.distributed.tensor import Partial, Replicate, Shard

ROWS, COLUMNS, REPLICA, SUM = "rows", "columns", "replica", "sum"
"""A matrix along one dimension of a mesh: cut into rows, cut into columns, whole on each rank, or a sum over ranks."""


def word_for(placement: Any) -> str:
    """Return the word for a placement of a matrix."""
    if isinstance(placement, Shard):
        return COLUMNS if placement.dim in (1, -1) else ROWS
    return SUM if isinstance(placement, Partial) else REPLICA


def placement_for(word: str) -> Any:
    """Return the placement that a word stands for."""
    return {ROWS: Shard(0), COLUMNS: Shard(1), REPLICA: Replicate(), SUM: Partial()}[word]


def words(placements: Sequence[Any]) -> tuple[str, ...]:
    """Return the word for each dimension of the mesh."""
    return tuple(word_for(placement) for placement in placements)


def share(extent: int, parts: int, index: int) -> range:
    """Return the part of an extent that rank `index` of `parts` has, as torch cuts it: all but the last are equal."""
    size = -(-extent // parts)
    return range(min(extent, index * size), min(extent, (index + 1) * size))
