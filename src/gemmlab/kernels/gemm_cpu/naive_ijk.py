"""Three loops, as the definition is written: one dot product for each element of C.

    for i:  for j:  for p:   C[i, j] += A[i, p] * B[p, j]

The innermost loop walks down a column of B: every step touches another cache line and uses 4 of its 64 bytes,
and each multiply-add waits for the one before.
"""

from __future__ import annotations

from gemmlab.ir.function import Function
from gemmlab.ir.types import F32
from gemmlab.kernels.cpu_kernel import Gemm, cpu_kernel, update


def emit(fn: Function, g: Gemm) -> None:
    with fn.range(g.m) as i, fn.range(g.n) as j:
        total = fn.var(F32, 0.0)
        with fn.range(g.k) as p:
            total.set(fn.fma(g.a[i * g.lda + p], g.b[p * g.ldb + j], total.read()))
        update(fn, g, g.c + i * g.ldc + j, total.read())


KERNEL = cpu_kernel(
    __file__,
    after="",
    summary="three loops, one dot product an element",
    idea="The plain definition: each element of a column of B costs a cache line, and every multiply-add waits for "
    "the one before.",
    source="Chinese article on AVX2 SGEMM: its naive_row_major_sgemm",
    emit=emit,
)
