"""C cut into rectangles, one job each, drawn by threads that wait inside compiled code.

K is never cut, so no two threads add to the same element and the result is the same to the bit whatever the
number of threads. The grid is the one whose largest rectangle is smallest (`codegen/product.py`); the workers are
in `codegen/pool.py`.

This is also the code behind `gemmlab.gemm`: single rows and columns and stacks of products have loops of their own,
and C entries and Python entry lie in the same object.
"""

from __future__ import annotations

from gemmlab.codegen.entry import emit_c_entry, emit_python_entry, emit_stack_entry
from gemmlab.codegen.microkernel import best_tile
from gemmlab.codegen.product import emit_product, product_workspace_bytes
from gemmlab.codegen.stack_entry import emit_python_stack
from gemmlab.codegen.stacks import emit_stack
from gemmlab.ir.function import Function
from gemmlab.ir.target import WIDTHS, host_target
from gemmlab.kernels.cpu_kernel import ALL_LAYOUTS, TRANSPOSABLE, Gemm, blocks_for, cpu_kernel, strides

C_ENTRY, STACK_ENTRY, PYTHON_ENTRY = "gemmlab_sgemm", "gemmlab_sgemm_stack", "gemmlab_python"


def resources(_lanes: int) -> dict[str, int]:
    """Return the workspace of each thread: the same for every width, because all widths share one pool."""
    widths = [width for width in WIDTHS if width <= host_target().lanes]
    needs = [product_workspace_bytes(best_tile(host_target(width)), blocks_for(width)) for width in widths]
    return {"workspace_bytes": max(needs)}


def emit(fn: Function, g: Gemm) -> None:
    tile, blocks = best_tile(g.module.target), blocks_for(g.module.lanes)
    product = emit_product(g.module, tile, blocks)
    stack = emit_stack(g.module, tile, blocks, product)
    entry = emit_c_entry(g.module, product, C_ENTRY)
    emit_stack_entry(g.module, stack, STACK_ENTRY)
    emit_python_entry(g.module, product, emit_python_stack(g.module, stack, "python_stack"), PYTHON_ENTRY)
    a_row, a_col, b_row, b_col = strides(fn, g)
    args = (g.m, g.n, g.k, g.alpha, g.a, a_row, a_col, g.b, b_row, b_col, g.beta, g.c, g.ldc, g.threads)
    fn.ret(fn.call(entry, *args))


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
    exports=("gemmlab_pool_init", "gemmlab_worker", C_ENTRY, STACK_ENTRY, PYTHON_ENTRY),
    resources=resources,
)
