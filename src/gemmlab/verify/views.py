"""Arrays in the layouts that users pass: Fortran order, steps, negative strides, odd addresses, repeated rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.ops.op import Float32Array

WRITABLE_VIEWS = (
    "plain", "fortran", "wide_rows", "every_second_column", "upside_down", "mirrored", "upside_down_mirrored",
    "unaligned",
)  # fmt: skip
VIEWS = (*WRITABLE_VIEWS, "read_only", "one_row_repeated", "one_column_repeated")
"""Memory layouts of an array. A repeated row or column (stride 0) changes the contents: all its copies are equal."""
_MARGIN_BYTES = 256
_ITEM = 4


@dataclass(frozen=True, slots=True)
class View:
    """An array, the memory in which it lies, and a copy of that memory to detect changes."""

    array: Float32Array
    _memory: npt.NDArray[np.uint8]
    _before: npt.NDArray[np.uint8]
    _owned: npt.NDArray[np.uint8]

    def changed(self) -> int:
        """Return the number of bytes that have changed since the view was made, inside and outside of the array."""
        return int(np.count_nonzero(self._memory != self._before))

    def changed_outside(self) -> int:
        """Return the number of bytes outside of the array's elements that have changed since the view was made."""
        return int(np.count_nonzero((self._memory != self._before) & (self._owned == 0)))


def make_view(contents: Float32Array, kind: str) -> View:
    """Return a copy of `contents`, which has two or more dimensions, in the layout `kind`, one of `VIEWS`."""
    if kind == "one_row_repeated":
        contents = np.broadcast_to(contents[..., :1, :], contents.shape)
    if kind == "one_column_repeated":
        contents = np.broadcast_to(contents[..., :1], contents.shape)
    strides, size = _strides(contents.shape, kind)
    memory = np.full(size + 2 * _MARGIN_BYTES, 0xFF, np.uint8)
    owned = np.zeros_like(memory)
    array: npt.NDArray[Any] = _lay_out(memory, contents.shape, strides, kind)
    array[...] = contents
    _lay_out(owned, contents.shape, strides, kind).view(np.uint32)[...] = 0xFFFFFFFF
    if kind == "read_only":
        array.flags.writeable = False
    return View(array, memory, memory.copy(), owned)


def _strides(shape: tuple[int, ...], kind: str) -> tuple[tuple[int, ...], int]:
    *batch, rows, cols = (max(1, extent) for extent in shape)
    row, col = {
        "fortran": (1, rows),
        "wide_rows": (cols + 5, 1),
        "every_second_column": (2 * cols + 1, 2),
        "one_row_repeated": (0, 1),
        "one_column_repeated": (1, 0),
    }.get(kind, (cols, 1))
    strides, words = [row, col], (rows - 1) * row + (cols - 1) * col + 1
    for extent in reversed(batch):
        strides.insert(0, words)
        words *= extent
    return tuple(stride * _ITEM for stride in strides), words * _ITEM


def _lay_out(
    memory: npt.NDArray[np.uint8], shape: tuple[int, ...], strides: tuple[int, ...], kind: str
) -> npt.NDArray[np.float32]:
    offset = _MARGIN_BYTES + (1 if kind == "unaligned" else 0)
    array: npt.NDArray[np.float32] = np.ndarray(shape, np.float32, memory.data, offset, strides)
    rows, cols = (
        slice(None, None, -1 if "upside_down" in kind else 1),
        slice(None, None, -1 if "mirrored" in kind else 1),
    )
    return array[..., rows, cols]
