"""Products whose rows begin on 16 bytes, as kernels with tensor maps need them."""

from __future__ import annotations

from dataclasses import replace

from gemmlab.ops.gemm_problem import GemmProblem


def laid_out(problem: GemmProblem, layout: str) -> GemmProblem:
    """The problem in a layout, with rows of A and B that begin on 16 bytes and are longer than needed."""
    trans_a, trans_b = (letter == "t" for letter in layout)
    lda, ldb = (problem.m if trans_a else problem.k), (problem.k if trans_b else problem.n)
    return replace(
        problem, lda=-(-lda // 4) * 4 + 4, ldb=-(-ldb // 4) * 4 + 4, trans_a=trans_a, trans_b=trans_b
    )  # fmt: skip
