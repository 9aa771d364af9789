"""The row cut into 64 parts, whatever the number of threads: each is summed by vectors, then their sums in order.

One core cannot request data as fast as memory delivers them. Parts are the same for any number of threads, so the
result is the same to the bit (`codegen/reductions.py`); a row of fewer than 2^16 elements is not cut. This is also the
code behind `gemmlab.sum`, whose entries for any strides and axes are in the same object.
"""

from __future__ import annotations

from gemmlab.codegen.reductions import GRAIN, PARTS, SUMS, emit_sums
from gemmlab.codegen.rowsum import row_roundings
from gemmlab.codegen.sum_entry import emit_python_sum
from gemmlab.ir.function import Function
from gemmlab.kernels.cpu_kernel import Arguments, thread_resources
from gemmlab.kernels.cpu_reduce import PLAIN, operator_of, reduce_kernel

PYTHON_SUM = "gemmlab_python_sum"


def emit(fn: Function, g: Arguments) -> None:
    long = emit_sums(g.module, operator_of(g))
    emit_python_sum(g.module, PYTHON_SUM)
    g.out[0] = fn.call(long, g.n, g.x, g.threads)


KERNEL = reduce_kernel(
    __file__,
    after="reduce_vector",
    summary="64 parts of the row, taken by threads in turn",
    idea="Several cores can request more from memory than one, and the parts do not depend on their number.",
    source="the article names threads as the last step on a CPU; the pool is our own",
    emit=emit,
    args=(*PLAIN, "threads"),
    threaded=True,
    exports=("gemmlab_pool_init", "gemmlab_worker", SUMS, PYTHON_SUM),
    # All code of a process shares one pool, so every kernel requests the workspace that the product needs.
    resources=thread_resources,
    roundings=lambda _config, n: row_roundings(-(-n // PARTS) + GRAIN) + row_roundings(PARTS),
)
