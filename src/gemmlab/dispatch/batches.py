"""A batch of products as launches of one kernel: the first product, and the offsets of the others' operands from it.

The kernel is chosen, checked and prepared for one product; for the others only addresses change. Contiguous left
matrices that all multiply the same right matrix are treated as one tall matrix, so that a batch of matrices times one
matrix, or times a vector, is a single launch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemmlab.dispatch.opaque_array import OpaqueArray, spread
from gemmlab.dispatch.request import Request, rows_contiguous
from gemmlab.dispatch.storage import row_major

Float32Array = npt.NDArray[np.float32]
Step = tuple[int, int, int]
ONE: tuple[Step, ...] = ((0, 0, 0),)
_MOST_ROWS = 2**31 - 1
"""The most rows of a matrix: kernels count them in 32 bits."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Stacks of left matrices, right matrices and results, with equal leading axes; broadcast axes have stride 0.

    `lefts` and `rights` are operands after op, or those of the transposed product (`swapped`).
    """

    lefts: Float32Array
    rights: Float32Array
    fulls: Float32Array
    swapped: bool = False
    """True if the product is computed transposed: `lefts` are then transposed matrices of b, `rights` those of a."""

    @property
    def first(self) -> tuple[Float32Array, Float32Array, Float32Array]:
        """Left and right matrix and result of the first product. The batch must not be empty."""
        at = (0,) * (self.fulls.ndim - 2)
        return self.lefts[at], self.rights[at], self.fulls[at]

    @property
    def steps(self) -> tuple[Step, ...]:
        """Bytes from the matrices of the first product to those of each product, in C order of the leading axes."""
        shape = self.fulls.shape[:-2]
        if not shape:
            return ONE
        return tuple(zip(*(_offsets(shape, x.strides[:-2]) for x in self._operands), strict=True))

    @property
    def distances(self) -> tuple[int, ...]:
        """Bytes between adjacent matrices along every leading axis longer than 1, of all operands.

        They determine the alignment.
        """
        shape = self.fulls.shape[:-2]
        steps = [zip(shape, x.strides[:-2], strict=True) for x in self._operands]
        return tuple(step for one in steps for extent, step in one if extent > 1)

    @property
    def _operands(self) -> tuple[Float32Array, Float32Array, Float32Array]:
        return self.lefts, self.rights, self.fulls


def batch_of(request: Request, target: Float32Array) -> Batch:
    """Return the batch whose products make up the result `target`, with as few products as possible."""
    full = target[..., np.newaxis] if request.column else target
    full = full[..., np.newaxis, :] if request.row else full
    left, right = request.left, request.right
    if request.batch:
        left = spread(left, (*request.batch, *left.shape[-2:]))
        right = spread(right, (*request.batch, *right.shape[-2:]))
    lefts, rights, fulls = row_major(left, right, full)
    found = Batch(lefts, rights, fulls, swapped=fulls is not full)
    for fewer in _folded(found):
        found = fewer
    return found


def _folded(batch: Batch) -> Iterator[Batch]:
    """Yield the batch with the innermost leading axis folded into the rows of left and result, then with the next axis
    too, as far as all its products have the same right matrix and the rows stay evenly spaced.
    """
    while batch.fulls.ndim > 2 and batch.fulls.size:
        one_right = batch.fulls.shape[-3] == 1 or batch.rights.strides[-3] == 0
        left, full = _taller(batch.lefts), _taller(batch.fulls)
        if not one_right or left is None or full is None:
            return
        batch = Batch(left, batch.rights[..., 0, :, :], full, batch.swapped)
        yield batch


def _taller(many: Float32Array) -> Float32Array | None:
    """Return a view in which the matrices along the innermost leading axis are one tall matrix.

    `None` if its rows would not be evenly spaced, or if there would be more than `_MOST_ROWS`.
    """
    extent, rows, cols = many.shape[-3:]
    if extent == 1:
        return many[..., 0, :, :]
    between, down, over = many.strides[-3:]
    if rows == 1:
        down = between
    tall = np.lib.stride_tricks.as_strided(
        many,
        (*many.shape[:-3], extent * rows, cols),
        (*many.strides[:-3], down, over),
        subok=isinstance(many, OpaqueArray),
    )
    even = between == rows * down and rows_contiguous(tall[(0,) * (many.ndim - 3)])
    return tall if even and extent * rows <= _MOST_ROWS else None


def _offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    total = np.zeros((), np.int64)
    for extent, step in zip(shape, strides, strict=True):
        total = total[..., np.newaxis] + np.arange(extent, dtype=np.int64) * step
    found: list[int] = total.ravel().tolist()
    return found
