"""The row cut into 64 parts, whatever the number of threads: each is summed by vectors, then their sums in order.

One core cannot ask for data as fast as memory brings them. Parts are the same for any number of threads, so the result
is the same to the bit.
"""

from __future__ import annotations

from gemmlab.codegen.function import Function
from gemmlab.codegen.module import Module
from gemmlab.codegen.pool import TASK_SIGNATURE, emit_pool, pack_words
from gemmlab.codegen.rowsum import emit_row, row_roundings
from gemmlab.codegen.runtime import SYMBOL
from gemmlab.codegen.types import F32, I8
from gemmlab.codegen.values import Value
from gemmlab.kernels.cpu_kernel import Arguments
from gemmlab.kernels.cpu_reduce import PLAIN, operator_of, reduce_kernel
from gemmlab.kernels.gemm_cpu.threaded import resources

PARTS = 64
GRAIN = 64
"""Elements that a part is a multiple of: parts share no cache line where the row starts on one."""
SERIAL = 1 << 16
"""Elements below which one thread is faster: 256 KiB, some ten microseconds."""


def emit(fn: Function, g: Arguments) -> None:
    row = emit_row(g.module, operator_of(g))
    with fn.when(g.n < SERIAL):
        g.out[0] = fn.call(row, g.n, g.x)
        fn.ret(0)
    pool, task = emit_pool(g.module), _emit_part(g.module, row)
    share = fn.ceil_div(fn.ceil_div(g.n, PARTS), GRAIN) * GRAIN
    parts = fn.ceil_div(g.n, share)
    sums = fn.scratch(F32, PARTS)
    context = pack_words(fn, [g.n, share, fn.address(g.x), fn.address(sums)])
    g.module.imported(SYMBOL)
    base = fn.symbol(f"@{SYMBOL}", I8)
    nothing = fn.cast(fn.index(0), F32)
    fn.call(pool.run, base, fn.function_address(task), context, parts, g.threads, nothing)
    g.out[0] = fn.call(row, parts, sums)


def _emit_part(module: Module, row: Function) -> Function:
    params = list(zip(("context", "job", "workspace"), TASK_SIGNATURE, strict=True))
    with module.function("reduce_part", params) as fn:
        context, job, _workspace = fn.args
        n, share = context[0], context[1]
        x, sums = (fn.cast(context[index], F32) for index in (2, 3))
        first: Value = job * share
        sums[job] = fn.call(row, fn.minimum(n - first, share), x + first)
        fn.finish()
    return fn


KERNEL = reduce_kernel(
    __file__,
    step=4,
    summary="64 parts of the row, drawn by threads",
    idea="Several cores ask memory for more than one can, and the parts are the same for any number of them.",
    source="the article names threads as the last step on a CPU; the pool is our own",
    emit=emit,
    args=(*PLAIN, "threads"),
    threaded=True,
    exports=("gemmlab_pool_init", "gemmlab_worker"),
    # All code of a process shares one pool, so all of it asks for the workspace that the product needs.
    resources=resources,
    roundings=lambda _config, n: row_roundings(-(-n // PARTS) + GRAIN) + row_roundings(PARTS),
)
