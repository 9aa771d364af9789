"""The two inner loops exchanged: one line moves, and the innermost loop walks along rows of B and C.

    for i:  for p:  for j:   C[i, j] += A[i, p] * B[p, j]

Now neighbouring steps use neighbouring elements, every byte of a cache line is used, the steps are independent,
and the compiler can make vectors of them.
"""

from __future__ import annotations

from gemmlab.ir.function import Function
from gemmlab.kernels.cpu_kernel import Gemm, add_row, cpu_kernel, scale_row


def emit(fn: Function, g: Gemm) -> None:
    with fn.range(g.m) as i:
        row = g.c + i * g.ldc
        scale_row(fn, g, row)
        with fn.when(g.alpha.differs(0.0)), fn.range(g.k) as p:
            add_row(fn, g, row, g.a[i * g.lda + p], g.b + p * g.ldb, g.n)


KERNEL = cpu_kernel(
    __file__,
    after="naive_ijk",
    summary="the two inner loops exchanged, so that memory is walked along rows",
    idea="Rows of B and C are read in order, so each cache line is used whole and the compiler can use vectors.",
    source="Chinese article on AVX2 SGEMM: its optimize_row_major_sgemm",
    emit=emit,
    vectorize=True,
)
