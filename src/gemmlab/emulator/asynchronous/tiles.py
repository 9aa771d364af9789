"""A box of a tensor: which bytes of global memory it covers, and where they are in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemmlab.core.tensor_map import TiledMap

SWIZZLE_ROWS = {0: 0, 32: 1, 64: 3, 128: 7}
"""By swizzle: bits of an address, from bit 7 on, that are combined with bits 4 and up (exclusive or)."""
PLAIN_ALIGNMENT = 128


@dataclass(frozen=True, slots=True)
class Box:
    """The rows of a box: runs of contiguous elements. A row outside the tensor has no global address."""

    rows: npt.NDArray[np.int64]
    """Global address of each row's first element inside the tensor."""
    inside: npt.NDArray[np.bool_]
    """For each row, whether it is in the tensor."""
    first: int
    """Bytes of a row before the tensor begins, and before it ends."""
    last: int
    row_bytes: int


def box_at(tensor: TiledMap, coordinates: Sequence[int]) -> Box:
    """Return the box whose first element has these coordinates, which may be outside the tensor."""
    width = tensor.type.nbytes
    row_bytes = tensor.copied[0] * width
    start = coordinates[0]
    first = min(max(0, -start), tensor.copied[0]) * width
    last = min(max(0, tensor.shape[0] - start), tensor.copied[0]) * width
    address = np.array([tensor.address + start * width], np.int64)
    inside = np.array([True])
    for axis in range(1, len(tensor.shape)):
        at = coordinates[axis] + np.arange(tensor.copied[axis], dtype=np.int64) * tensor.element_strides[axis]
        fits = (at >= 0) & (at < tensor.shape[axis])
        address = (at[:, None] * tensor.strides[axis - 1] + address[None, :]).reshape(-1)
        inside = (fits[:, None] & inside[None, :]).reshape(-1)
    return Box(address, inside, min(first, last), last, row_bytes)


def places(tensor: TiledMap, address: int, offset: int) -> slice | npt.NDArray[np.int64]:
    """Return the indices in a block's shared memory of a box's bytes, in their order.

    `address` is the box's shared address, `offset` its index. The swizzle depends on the address's bits.
    """
    if not tensor.swizzle:
        return slice(offset, offset + tensor.nbytes)
    units = np.arange(address >> 4, (address + tensor.nbytes) >> 4, dtype=np.int64)
    moved = units ^ (units >> 3 & SWIZZLE_ROWS[tensor.swizzle])
    index = (moved << 4) + (offset - address)
    return (index[:, None] + np.arange(16)).reshape(-1)


def alignment(tensor: TiledMap) -> int:
    """Bytes after which the swizzle's pattern repeats."""
    return (SWIZZLE_ROWS[tensor.swizzle] + 1) * PLAIN_ALIGNMENT
