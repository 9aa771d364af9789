"""The storage of three matrices in the form that kernels take: row-major with leading dimensions and transposition
flags.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.dispatch.request import rows_contiguous
from gemmlab.ops.gemm_problem import GemmProblem

Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Stored:
    """A product, or the first product of a batch, that kernels can compute in place.

    `a`, `b` and `c` are the addresses of its matrices. The caller must keep the arrays alive.
    """

    problem: GemmProblem
    a: int
    b: int
    c: int
    distances: tuple[int, ...] = ()
    """Bytes between adjacent matrices of a batch, for each of its axes and each operand; empty for one product."""
    swapped: bool = False
    """True if the product is computed transposed: `a` is then the matrix that the caller calls b."""

    def begins_on(self, nbytes: int) -> bool:
        """Return whether all operands, of all products of a batch, begin on a multiple of `nbytes` bytes."""
        return not any(where % nbytes for where in (self.a, self.b, self.c, *self.distances))

    def require_begin_on(self, nbytes: int, kernel: str) -> None:
        """Raise `UsageError`, with the operand's name, for operands that do not begin on a multiple of `nbytes`."""
        if self.begins_on(nbytes):
            return
        places = {"b" if self.swapped else "a": self.a, "a" if self.swapped else "b": self.b, "out": self.c}
        off = [f"{name} begins at 0x{place:x}" for name, place in sorted(places.items()) if place % nbytes]
        found = ", ".join(off) or "the distance of matrices of a batch is no multiple of that"
        raise UsageError(f"gemm: {kernel} needs operands that begin on {nbytes} bytes; {found}")


def readable(matrix: Float32Array) -> bool:
    """Return whether kernels can read a matrix in place: the elements of its rows or of its columns are adjacent."""
    return rows_contiguous(matrix) or rows_contiguous(matrix.T)


def row_major(
    left: Float32Array, right: Float32Array, full: Float32Array
) -> tuple[Float32Array, Float32Array, Float32Array]:
    """Return (left, right, full) as they are if the rows of `full` are contiguous, else the transposed product.

    `full = left @ right` is also `full^T = right^T @ left^T`. For stacks of matrices the first one decides.
    """
    if rows_contiguous(full[(0,) * (full.ndim - 2)]):
        return left, right, full
    return right.swapaxes(-1, -2), left.swapaxes(-1, -2), full.swapaxes(-1, -2)


def stored(
    left: Float32Array, right: Float32Array, full: Float32Array, alpha: float, beta: float,
    distances: tuple[int, ...] = (), swapped: bool = False,
) -> Stored | None:  # fmt: skip
    """Return `full = alpha * left @ right + beta * full` as kernels take it; `None` if an operand must first be copied.

    For a batch, the arrays are those of its first product, and `distances` are those of `Stored`; so is `swapped`.
    """
    left, right, full = row_major(left, right, full)
    if not (rows_contiguous(full) and readable(left) and readable(right)):
        return None
    trans_a, trans_b = not rows_contiguous(left), not rows_contiguous(right)
    problem = GemmProblem(
        m=full.shape[0], n=full.shape[1], k=left.shape[1], alpha=alpha, beta=beta, trans_a=trans_a, trans_b=trans_b,
        lda=_leading(left.T if trans_a else left), ldb=_leading(right.T if trans_b else right), ldc=_leading(full),
    )  # fmt: skip
    return Stored(problem, left.ctypes.data, right.ctypes.data, full.ctypes.data, distances, swapped)


def _leading(matrix: Float32Array) -> int:
    rows, cols = matrix.shape
    return matrix.strides[0] // 4 if rows > 1 and matrix.size else max(1, cols)
