"""The row cut into 64 parts, whatever the number of threads: each is summed by vectors, then their sums in order.

One core cannot ask for data as fast as memory brings them. Parts are the same for any number of threads, so the result
is the same to the bit (`codegen/sums.py`). This is also the code behind `gemmlab.sum`: many rows and many columns have
entries of their own in the same object.
"""

from __future__ import annotations

from gemmlab.codegen.function import Function
from gemmlab.codegen.rowsum import row_roundings
from gemmlab.codegen.sums import COLUMN_SUMS, GRAIN, PARTS, ROW_SUMS, emit_sums
from gemmlab.kernels.cpu_kernel import Arguments
from gemmlab.kernels.cpu_reduce import PLAIN, operator_of, reduce_kernel
from gemmlab.kernels.gemm_cpu.threaded import resources


def emit(fn: Function, g: Arguments) -> None:
    g.out[0] = fn.call(emit_sums(g.module, operator_of(g)), g.n, g.x, g.threads)


KERNEL = reduce_kernel(
    __file__,
    after="reduce_vector",
    summary="64 parts of the row, drawn by threads",
    idea="Several cores ask memory for more than one can, and the parts are the same for any number of them.",
    source="the article names threads as the last step on a CPU; the pool is our own",
    emit=emit,
    args=(*PLAIN, "threads"),
    threaded=True,
    exports=("gemmlab_pool_init", "gemmlab_worker", ROW_SUMS, COLUMN_SUMS),
    # All code of a process shares one pool, so all of it asks for the workspace that the product needs.
    resources=resources,
    roundings=lambda _config, n: row_roundings(-(-n // PARTS) + GRAIN) + row_roundings(PARTS),
)
