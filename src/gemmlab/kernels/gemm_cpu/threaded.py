"""C cut into rectangles, one job each, drawn by threads that wait inside compiled code.

K is never cut, so no two threads add to the same element and the result is the same to the bit whatever the
number of threads. The grid is the one whose largest rectangle is smallest (`codegen/product.py`); the workers are
in `codegen/pool.py`.

This is also the code behind `gemmlab.gemm`: single rows and columns and stacks of products have loops of their own,
and C entries and Python entry lie in the same object.
"""

from __future__ import annotations

from gemmlab.codegen.entries import EXPORTS, emit_entries
from gemmlab.codegen.microkernel import best_tile
from gemmlab.codegen.product import emit_product
from gemmlab.ir.function import Function
from gemmlab.kernels.cpu_kernel import (
    ALL_LAYOUTS,
    TRANSPOSABLE,
    Gemm,
    blocks_for,
    cpu_kernel,
    job_arguments,
    thread_resources,
)  # fmt: skip


def emit(fn: Function, g: Gemm) -> None:
    tile, blocks = best_tile(g.module.target), blocks_for(g.module.lanes)
    entry = emit_entries(g.module, tile, blocks, emit_product(g.module, tile, blocks))
    fn.ret(fn.call(entry, *job_arguments(fn, g), g.threads))


KERNEL = cpu_kernel(
    __file__,
    after="microkernel",
    summary="the same on all cores: rectangles of C as jobs for waiting threads",
    idea="Every core computes its own rectangles of C, and work is handed over in less than a microsecond.",
    source="Chinese article on AVX2 SGEMM names threads as the last step; the pool is our own",
    emit=emit,
    args=(*TRANSPOSABLE, "threads"),
    layouts=ALL_LAYOUTS,
    threaded=True,
    exports=EXPORTS,
    resources=thread_resources,
)
