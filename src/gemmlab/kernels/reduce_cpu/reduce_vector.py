"""Accumulators that are vectors, with one sum in each lane: eight vectors in turn, in short chains
(`codegen/rowsum.py`).
"""

from __future__ import annotations

from gemmlab.codegen.rowsum import emit_row, row_roundings
from gemmlab.ir.function import Function
from gemmlab.kernels.cpu_kernel import Arguments
from gemmlab.kernels.cpu_reduce import operator_of, reduce_kernel


def emit(fn: Function, g: Arguments) -> None:
    g.out[0] = fn.call(emit_row(g.module, operator_of(g)), g.n, g.x)


KERNEL = reduce_kernel(
    __file__,
    after="reduce_accumulators",
    summary="eight vector accumulators, chains of 64",
    idea="An instruction adds a number in every lane, until the caches, then memory, cannot deliver more.",
    source="beyond the article: its GPU tree, leaves first, as vectors",
    emit=emit,
    roundings=lambda _config, n: row_roundings(n),
)
