"""Boxes of tensors: the addresses of their bytes in global memory and in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemmlab.core.tensor_map import TiledMap

SWIZZLE_ROWS = {0: 0, 32: 1, 64: 3, 128: 7}
"""Swizzle in bytes -> mask of the address bits from bit 7 on that are xored into the bits from bit 4 on."""
MODES = {0: 0, 128: 1, 64: 2, 32: 3}
"""Swizzle in bytes -> its number in a descriptor of wgmma."""
PLAIN_ALIGNMENT = 128


@dataclass(frozen=True, slots=True)
class Box:
    """The rows of a box, each of `row_bytes` bytes that are contiguous in global memory.

    Only bytes `first` to `last` (excluded) of the rows that are `inside` are bytes of the tensor.
    """

    rows: npt.NDArray[np.int64]
    """Global address of byte 0 of each row; that byte itself may be outside the tensor."""
    inside: npt.NDArray[np.bool_]
    """True for each row that is in the tensor."""
    first: int
    """Offset in a row of the first byte inside the tensor."""
    last: int
    """Offset in a row of the end of the bytes inside the tensor."""
    row_bytes: int


def box_at(tensor: TiledMap, coordinates: Sequence[int]) -> Box:
    """Return the box whose first element has these coordinates, which may be outside the tensor."""
    if tensor.interleave:
        strides = (tensor.interleave, *tensor.strides)
        first, last, row_bytes = 0, tensor.interleave, tensor.interleave
        address, axes = tensor.address, range(len(tensor.shape))
    else:
        strides = (tensor.type.nbytes, *tensor.strides)
        row_bytes = tensor.copied[0] * strides[0]
        first = min(max(0, -coordinates[0]) * strides[0], row_bytes)
        last = min(max(0, tensor.shape[0] - coordinates[0]) * strides[0], row_bytes)
        address, axes = tensor.address + coordinates[0] * strides[0], range(1, len(tensor.shape))
    rows, inside = np.array([address], np.int64), np.array([True])
    for axis in axes:
        at = coordinates[axis] + np.arange(tensor.slices[axis], dtype=np.int64) * tensor.element_strides[axis]
        fits = (at >= 0) & (at < tensor.shape[axis])
        rows = (at[:, None] * strides[axis] + rows[None, :]).reshape(-1)
        inside = (fits[:, None] & inside[None, :]).reshape(-1)
    return Box(rows, inside, min(first, last), last, row_bytes)


def places(tensor: TiledMap, address: int, offset: int) -> slice | npt.NDArray[np.int64]:
    """Return the indices in a block's shared memory of a box's bytes, in the order of the box.

    `address` is the box's shared address, on which the swizzle depends; `offset` is the index of that address.
    """
    if not tensor.swizzle:
        return slice(offset, offset + tensor.span)
    row = tensor.pitch >> 4
    rows = np.arange(tensor.span // tensor.pitch, dtype=np.int64)[:, None]
    units = ((address >> 4) + rows * row + np.arange(tensor.row_bytes >> 4)).reshape(-1)
    moved = units ^ (units >> 3 & SWIZZLE_ROWS[tensor.swizzle])
    index = (moved << 4) + (offset - address)
    return (index[:, None] + np.arange(16)).reshape(-1)


def alignment(tensor: TiledMap) -> int:
    """Return the number of bytes after which the swizzle's pattern repeats."""
    return (SWIZZLE_ROWS[tensor.swizzle] + 1) * PLAIN_ALIGNMENT
