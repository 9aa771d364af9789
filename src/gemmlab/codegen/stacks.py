"""Stacks of products in one call: the code that multiplies them, and the division of the stack among threads.

Products along the innermost axis of a stack are a run: one call computes all of them, with one distance for each
operand. A thread takes a share of the stack. If products are large and few, or of at least `_LARGE` multiply-adds, the
threads share each product instead, one after the other. Either way each product is the same to the bit as if computed
alone.
"""

from __future__ import annotations

from gemmlab.codegen.axes import unravelled
from gemmlab.codegen.blocking import Blocks
from gemmlab.codegen.pool import TASK_SIGNATURE, pack_words
from gemmlab.codegen.product import PRODUCT, SERIAL_WORK
from gemmlab.codegen.small import is_small
from gemmlab.codegen.small_dots import emit_dots
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I64, pointer
from gemmlab.ir.values import Operand, Value

MOST_AXES = 32
AXIS_WORDS = 4
"""Words of an axis: its extent, and the distances in elements along it in A, B and C."""
STACK = (*PRODUCT, ("axes", pointer(I64)), ("axis_count", I64))
"""Arguments of a stack: those of its first product, and its axes, outermost first, as at most `MOST_AXES` times
`AXIS_WORDS` words. m, n and the axes' extents are not 0.
"""

_OVERHEAD = 512
"""Fixed cost of a product besides its multiply-adds, in multiply-adds."""
_LARGE = 1 << 24
"""Multiply-adds from which a product is divided among all threads, whatever the number of products."""
_JOBS_A_THREAD = 4

_M, _N, _K, _SCALARS, _A, _B, _C, _A_ROW, _A_COL, _B_ROW, _B_COL, _LDC, _AXES, _AXIS_COUNT, _TOTAL, _SHARE = range(16)
_POOL = 16


def stack_cost(total: Value, m: Value, n: Value, k: Value) -> Value:
    """Return the cost of `total` products in multiply-adds, overheads included."""
    return total * (m * n * k + _OVERHEAD)


def emit_stack(
    module: Module, blocks: Blocks, product: Function, serial_work: int = SERIAL_WORK, *, small: bool = True
) -> Function:
    """Emit `stack(*STACK)`, which computes every product of a stack; the module has `product` and the pool already.

    With `small`, small products have separate loops, and the module has `small` and `gemv_dot` already, too.
    """
    run = _emit_run(module, blocks, product) if small else _emit_plain_run(module, product)
    part = _emit_part(module, run)
    fold = _emit_fold(module)
    with module.function("stack", STACK) as fn:
        m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, ldc, workspace, pool_at, threads, axes, found = (
            fn.args
        )
        folded = fn.scratch(I64, MOST_AXES * AXIS_WORDS)
        count = fn.call(fold, axes, found, folded)
        total = fn.var(I64, 1)
        with fn.range(count) as index:
            total.set(total * folded[index * AXIS_WORDS])
        cost = stack_cost(total.read(), m, n, k)
        helpers = fn.select(cost < serial_work, 1, threads)
        work = m * n * k
        few = (total < threads * 2) | (work >= _LARGE)
        alone = (work >= serial_work) & few & (threads > 1)
        share = fn.ceil_div(total.read(), fn.select(helpers < 2, 1, helpers * _JOBS_A_THREAD))
        words: list[Operand] = [
            m, n, k, 0, fn.address(a), fn.address(b), fn.address(c), a_row, a_col, b_row, b_col, ldc,
            fn.address(folded), count, total.read(), share, fn.address(pool_at),
        ]  # fmt: skip
        context = pack_words(fn, words)
        floats = fn.cast(context, F32)
        floats[2 * _SCALARS] = alpha
        floats[2 * _SCALARS + 1] = beta
        with fn.choose(alone) as how:
            with how.yes(), fn.range(total.read()) as index:
                at = _place(fn, index, folded, count, (a, b, c))
                a_at, b_at, c_at = at
                fn.call(
                    product, m, n, k, alpha, a_at, a_row, a_col, b_at, b_row, b_col, beta, c_at, ldc, workspace,
                    pool_at, threads,
                )  # fmt: skip
            with how.no():
                jobs = fn.ceil_div(total.read(), share)
                fn.call(module["pool_run"], pool_at, fn.function_address(part), context, jobs, helpers, workspace)
        fn.finish()
    return fn


def _emit_fold(module: Module) -> Function:
    """Emit `fold_axes(axes, count, out)`: copy the axes of a stack to `out`, simplified, and return their number.

    Axes of extent 1 are dropped, and neighbours along which products are evenly spaced become one. The longest axis
    changes places with the innermost one, so that runs are long.
    """
    words = pointer(I64)
    with module.function("fold_axes", [("axes", words), ("count", I64), ("out", words)], I64) as fn:
        axes, count, out = fn.args
        found = fn.var(I64, 0)
        with fn.range(count) as index:
            axis = axes + index * AXIS_WORDS
            extent = axis[0]
            with fn.when(extent.differs(1)):
                last = out + (found - 1) * AXIS_WORDS
                joined = fn.var(I64, 0)
                with fn.when(found > 0):
                    even = fn.zero_extend(last[1].equals(axis[1] * extent) & last[2].equals(axis[2] * extent))
                    joined.set(even & fn.zero_extend(last[3].equals(axis[3] * extent)))
                with fn.choose(joined.differs(0)) as how:
                    with how.yes():
                        last[0] = last[0] * extent
                    with how.no():
                        found += 1
                place = out + (found - 1) * AXIS_WORDS
                with fn.when(joined.equals(0)):
                    place[0] = extent
                for word in range(1, AXIS_WORDS):
                    place[word] = axis[word]
        longest = fn.var(I64, 0)
        with fn.range(found.read()) as index, fn.when(out[index * AXIS_WORDS] > out[longest * AXIS_WORDS]):
            longest.set(index)
        with fn.when(found > 0):
            one, two = out + longest * AXIS_WORDS, out + (found - 1) * AXIS_WORDS
            for word in range(AXIS_WORDS):
                saved = one[word]
                one[word] = two[word]
                two[word] = saved
        fn.finish(found.read())
    return fn


def _place(
    fn: Function, index: Value, axes: Value, count: Operand, starts: tuple[Value, Value, Value]
) -> tuple[Value, Value, Value]:
    """Emit the addresses of A, B and C of product number `index` of a stack, and return them."""
    moved = unravelled(fn, index, axes, count, 3)
    a, b, c = (start + step for start, step in zip(starts, moved, strict=True))
    return a, b, c


def _emit_part(module: Module, run: Function) -> Function:
    """Emit a task of the pool: each job computes a share of the stack, by calls of `run`."""
    params = list(zip(("context", "job", "workspace"), TASK_SIGNATURE, strict=True))
    with module.function("stack_part", params) as fn:
        context, job, workspace = fn.args
        axes, count, total, share = fn.cast(context[_AXES], I64), context[_AXIS_COUNT], context[_TOTAL], context[_SHARE]
        first = job * share
        end = fn.minimum(first + share, total)
        inner = axes + (count - 1) * AXIS_WORDS
        with fn.choose(count.equals(0)) as none:
            with none.yes():
                starts = [fn.cast(context[word], F32) for word in (_A, _B, _C)]
                fn.call(run, context, 1, 0, 0, 0, *starts, workspace)
            with none.no():
                at = fn.var(I64, first)
                with fn.loop() as done:
                    here = at.read()
                    fn.leave_if(done, here >= end)
                    extent = inner[0]
                    many = fn.minimum(extent - here % extent, end - here)
                    a, b, c = (fn.cast(context[word], F32) for word in (_A, _B, _C))
                    places = _place(fn, here, axes, count, (a, b, c))
                    fn.call(run, context, many, inner[1], inner[2], inner[3], *places, workspace)
                    at.set(here + many)
        fn.finish()
    return fn


_RUN = (
    ("context", pointer(I64)), ("count", I64), ("a_next", I64), ("b_next", I64), ("c_next", I64), ("a", pointer(F32)),
    ("b", pointer(F32)), ("c", pointer(F32)), ("workspace", pointer(F32)),
)  # fmt: skip
"""Arguments of `stack_run`, which computes `count` evenly spaced products on one thread: the context of the pool's
task, the distances in elements from product to product, and the first product's operands.
"""
_EXTENTS = (_M, _N, _K, _A_ROW, _A_COL, _B_ROW, _B_COL, _LDC)


def _emit_plain_run(module: Module, product: Function) -> Function:
    """Emit `stack_run(*_RUN)`, which calls `product` for each product."""
    with module.function("stack_run", _RUN) as fn:
        _each_product(fn, product)
        fn.finish()
    return fn


def _each_product(fn: Function, product: Function) -> None:
    context, count, a_next, b_next, c_next, a, b, c, workspace = fn.args
    m, n, k, a_row, a_col, b_row, b_col, ldc = (context[word] for word in _EXTENTS)
    scalars = fn.cast(context, F32)
    alpha, beta = scalars[2 * _SCALARS], scalars[2 * _SCALARS + 1]
    a_at, b_at, c_at = (fn.var(pointer(F32), start) for start in (a, b, c))
    with fn.range(count):
        job = (m, n, k, alpha, a_at, a_row, a_col, b_at, b_row, b_col, beta, c_at, ldc, workspace)
        fn.call(product, *job, fn.cast(context[_POOL], I64), 1)
        for where, step in ((a_at, a_next), (b_at, b_next), (c_at, c_next)):
            where.set(where + step)


def _emit_run(module: Module, blocks: Blocks, product: Function) -> Function:
    """Emit `stack_run(*_RUN)`, which computes small products in loops of their own and calls `product` for others."""
    small, dots = module["small"], emit_dots(module)
    with module.function("stack_run", _RUN) as fn:
        context, count, a_next, b_next, c_next, a, b, c, workspace = fn.args
        m, n, k, a_row, a_col, b_row, b_col, ldc = (context[word] for word in _EXTENTS)
        scalars = fn.cast(context, F32)
        alpha, beta = scalars[2 * _SCALARS], scalars[2 * _SCALARS + 1]
        products = (k > 0) & alpha.differs(0.0)
        # A product outside of a stack computes these by `gemv_dot`, which adds in another order than `small`.
        vectors = (m.equals(1) | n.equals(1)) & a_col.equals(1) & b_row.equals(1)
        with fn.when(products & vectors.equals(0) & is_small(m, n, k, blocks)):
            steps = (count, a_next, b_next, c_next)
            fn.call(small, *steps, m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, ldc, workspace)
            fn.ret()
        column = n.equals(1)
        with fn.when(products & vectors & is_small(m, n, k, blocks)):

            def either(one: Value, two: Value) -> Value:
                return fn.select(column, one, two, one.type)

            matrix, other, rows, apart = either(a, b), either(b, a), either(m, n), either(a_row, b_col)
            steps = (count, either(a_next, b_next), either(b_next, a_next), c_next)
            fn.call(dots, *steps, rows, k, alpha, matrix, apart, other, beta, c, fn.select(column, ldc, 1))
            fn.ret()
        _each_product(fn, product)
        fn.finish()
    return fn
