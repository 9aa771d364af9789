"""How three matrices lie in memory, as kernels are told: row-major with leading dimensions and transposition flags."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemmlab.dispatch.operands import rows_contiguous
from gemmlab.ops.gemm_problem import GemmProblem

Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Stored:
    """A product that kernels can compute in place, and the addresses of its operands, which the caller keeps alive."""

    problem: GemmProblem
    a: int
    b: int
    c: int

    @property
    def aligned(self) -> bool:
        """Whether every row begins on 16 bytes, so that kernels may move four floats at once."""
        p = self.problem
        return not any(address % 16 for address in (self.a, self.b, self.c)) and not any(
            ld % 4 for ld in (p.lda, p.ldb, p.ldc)
        )


def readable(matrix: Float32Array) -> bool:
    """Whether kernels can read it in place, as it is or transposed."""
    return rows_contiguous(matrix) or rows_contiguous(matrix.T)


def stored(left: Float32Array, right: Float32Array, full: Float32Array, alpha: float, beta: float) -> Stored | None:
    """`full = alpha * left @ right + beta * full` as a problem, `None` where an operand would have to be copied.

    A column-major result is the row-major result of the product of the transposes, in the other order.
    """
    if not rows_contiguous(full):
        left, right, full = right.T, left.T, full.T
    if not (rows_contiguous(full) and readable(left) and readable(right)):
        return None
    trans_a, trans_b = not rows_contiguous(left), not rows_contiguous(right)
    problem = GemmProblem(
        m=full.shape[0], n=full.shape[1], k=left.shape[1], alpha=alpha, beta=beta, trans_a=trans_a, trans_b=trans_b,
        lda=_leading(left.T if trans_a else left), ldb=_leading(right.T if trans_b else right), ldc=_leading(full),
    )  # fmt: skip
    return Stored(problem, left.ctypes.data, right.ctypes.data, full.ctypes.data)


def _leading(matrix: Float32Array) -> int:
    rows, cols = matrix.shape
    return matrix.strides[0] // 4 if rows > 1 and matrix.size else max(1, cols)
