"""The interface the world agreed on: BLAS `sgemm`, column-major, with transposition, scaling and leading dimensions.

BLAS stores columns contiguously and lets each operand be transposed; strides turn that into one addressing rule:

    element (i, p) of op(A)  =  A[i * a_down + p * a_over]     a_down = 1, a_over = lda   ('N')
                                                               a_down = lda, a_over = 1   ('T')

A row-major product is the same call with the operands exchanged, because C' = op(B)' op(A)'. The rung exchanges them
for its callers, whose matrices are row-major.
"""

from __future__ import annotations

from gemmlab.ir.function import Function
from gemmlab.ir.types import F32
from gemmlab.kernels.cpu_kernel import ALL_LAYOUTS, TRANSPOSABLE, Gemm, cpu_kernel, update


def emit(fn: Function, g: Gemm) -> None:
    # The exchange: BLAS's A is our B and its M is our N.
    m, n, a, lda, trans_a = g.n, g.m, g.b, g.ldb, g.trans_b
    b, ldb, trans_b = g.a, g.lda, g.trans_a
    a_down, a_over = fn.select(trans_a.equals(0), 1, lda), fn.select(trans_a.equals(0), lda, 1)
    b_down, b_over = fn.select(trans_b.equals(0), 1, ldb), fn.select(trans_b.equals(0), ldb, 1)
    with fn.range(n) as j, fn.range(m) as i:
        total = fn.var(F32, 0.0)
        with fn.range(g.k) as p:
            total.set(fn.fma(a[i * a_down + p * a_over], b[p * b_down + j * b_over], total.read()))
        update(fn, g, g.c + i + j * g.ldc, total.read())


KERNEL = cpu_kernel(
    __file__,
    after="loop_reorder_ikj",
    summary="column-major BLAS sgemm: transposition, alpha, beta, leading dimensions",
    idea="It is not faster: naive loops with the full BLAS interface, whose meaning every later rung keeps.",
    source="Chinese article on AVX2 SGEMM: its naive_col_major_sgemm",
    emit=emit,
    args=TRANSPOSABLE,
    layouts=ALL_LAYOUTS,
)
