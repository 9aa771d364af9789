"""Words for the placements of a matrix, and the range of an extent that a rank owns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.distributed.tensor import Partial, Replicate, Shard

from gemmlab.core.errors import UsageError

ROWS, COLUMNS, REPLICA, SUM, OTHER = "rows", "columns", "replica", "sum", "other"
"""Words for the layout of a matrix along one dimension of a mesh: cut into rows, cut into columns, replicated, or with
a sum over ranks still to do. `OTHER` is a placement that only torch can change, as a cut with strides or an average.
"""


def word_for(placement: Any) -> str:
    """Return the word for a placement of torch."""
    # Subclasses have other meanings.
    if type(placement) is Shard:
        return COLUMNS if placement.dim in (1, -1) else ROWS
    if type(placement) is Partial and placement.reduce_op == "sum":
        return SUM
    return REPLICA if type(placement) is Replicate else OTHER


def placement_for(word: str) -> Any:
    """Return torch's placement for a word."""
    return {ROWS: Shard(0), COLUMNS: Shard(1), REPLICA: Replicate(), SUM: Partial()}[word]


def words(placements: Sequence[Any]) -> tuple[str, ...]:
    """Return the words for a matrix's placements, one for each dimension of the mesh."""
    return tuple(word_for(placement) for placement in placements)


def place_in(mesh: Any) -> tuple[int, ...]:
    """Return this rank's place in a mesh. It need not be its rank in the mesh's groups, which torch sorts. Raises
    `UsageError` in a process that the mesh does not contain.
    """
    found = mesh.get_coordinate()
    if found is None:
        raise UsageError("gemmlab.distributed.gemm: the mesh does not contain this process, which has no part of it")
    return tuple(map(int, found))


def share(extent: int, parts: int, index: int) -> range:
    """Return the range of an extent that rank `index` of `parts` owns.

    As in torch, all parts have the same length but for the last ones, which are shorter or empty.
    """
    size = -(-extent // parts)
    return range(min(extent, index * size), min(extent, (index + 1) * size))
