"""Blocks that fit the cache: each is read from memory once and used many times.

Cutting K is the *outer product* view, C = sum over k-blocks of A[:, pc] B[pc, :]; cutting M and N is the *inner
product* view, each block of C on its own. Both together:

            pc                    jc                     A block  MC x KC   each element is used for NC columns
        +---+---+---+         +---+---+---+              B block  KC x NC   stays in the caches while i runs
     ic |   |###|   |      pc |   |###|   |              C rows   1 x NC
        +---+---+---+         +---+---+---+
            A                     B
"""

from __future__ import annotations

from gemmlab.ir.function import Function
from gemmlab.kernels.cpu_kernel import Gemm, add_row, cpu_kernel, keeps, scale_row


def emit(fn: Function, g: Gemm) -> None:
    mc, kc, nc = (g.config[name] for name in ("MC", "KC", "NC"))
    with fn.range(g.m) as i:
        scale_row(fn, g, g.c + i * g.ldc)
    with (
        fn.when(g.alpha.differs(0.0)),
        fn.range(0, g.n, nc) as jc,
        fn.range(0, g.k, kc) as pc,
        fn.range(0, g.m, mc) as ic,
    ):
        cols = fn.minimum(g.n - jc, nc)
        with fn.range(ic, fn.minimum(ic + mc, g.m)) as i, fn.range(pc, fn.minimum(pc + kc, g.k)) as p:
            add_row(fn, g, g.c + i * g.ldc + jc, g.a[i * g.lda + p], g.b + p * g.ldb + jc, cols)


KERNEL = cpu_kernel(
    __file__,
    after="blas_naive",
    summary="loops cut into blocks that fit the caches",
    idea="A block of B is used for MC rows of A while it is in cache, so memory is read less often.",
    source="Chinese article on AVX2 SGEMM: blocking by inner and outer products",
    emit=emit,
    params={"MC": 64, "KC": 64, "NC": 128},
    tune={"MC": (32, 64, 256), "KC": (32, 64, 128), "NC": (128, 512)},
    objection=keeps("MC > 0", "KC > 0", "NC > 0"),
    vectorize=True,
)
