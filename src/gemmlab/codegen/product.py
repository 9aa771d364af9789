"""The whole product: degenerate cases, single rows and columns, and the division of C into jobs for the threads."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.codegen.blocking import Blocks
from gemmlab.codegen.gemv import AXPY_COLS, emit_axpy, emit_dot
from gemmlab.codegen.macrokernel import JOB, emit_engine, workspace_floats
from gemmlab.codegen.microkernel import FLOATS, Tile
from gemmlab.codegen.pool import AREA, TASK_SIGNATURE, Pool, emit_pool, pack_words
from gemmlab.codegen.shared_strips import emit_shared_product
from gemmlab.codegen.small import emit_small, is_small, is_small_aligned, small_workspace_floats
from gemmlab.codegen.thread_division import VECTOR_SERIAL, VECTOR_SHARE
from gemmlab.codegen.thread_grid import division, emitted_row_multiple, packing_cost, worthwhile
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.target import Target
from gemmlab.ir.types import F32, I8, I64, pointer, vector
from gemmlab.ir.values import Operand, Value

PRODUCT = (*JOB, ("pool", pointer(I8)), ("threads", I64))
"""Arguments of a whole product: those of a job, where alpha and extents may be 0, the pool, and the most threads."""

SERIAL_WORK = 1 << 18
"""Multiply-adds below which a second thread costs more than it saves (about 3 us of one core)."""
SERIAL_WORK_IN_HALVES = 1 << 17
"""As `SERIAL_WORK`, for processors that multiply a vector in two halves (`Target.halves`).

On Zen 4, where it was measured, this work takes about 2.5 us of one core.
"""


def usual_serial_work(target: Target) -> int:
    """Return the number of multiply-adds below which products use one thread by default."""
    return SERIAL_WORK_IN_HALVES if target.halves else SERIAL_WORK


def product_workspace_bytes(tile: Tile, blocks: Blocks) -> int:
    """Return the bytes of workspace that each thread needs for `product`."""
    return 4 * max(workspace_floats(tile, blocks), small_workspace_floats(tile), AXPY_COLS)


@dataclass(frozen=True, slots=True)
class Divisible:
    """An engine whose product can be divided into jobs.

    `job` has the arguments `JOB`. A job's first row is a multiple of `rows`, its first column one of `cols`. `shared`,
    if it is given, computes the product with strips of B that all threads share (`codegen/shared_strips.py`).
    """

    job: Function
    rows: int
    cols: int
    shared: Function | None = None
    kc: int = 0
    """Steps of k in a block of `shared`, before k is divided evenly among blocks; 0 without `shared`."""
    even: bool = False
    """True if a job may begin at any multiple of `thread_grid.row_multiple` instead of `rows`."""


def emit_product(module: Module, tile: Tile, blocks: Blocks, serial_work: int = SERIAL_WORK) -> Function:
    """Emit the pool, and `product(*PRODUCT)`, which computes `C = alpha * A B + beta * C` for any sizes and strides.

    Below `serial_work` multiply-adds it takes one thread, but matrix-vector products have a limit of their own
    (`VECTOR_SERIAL`). Small products on one thread are computed in place, without packing.
    """
    engine = emit_engine(module, tile, blocks)
    pool = emit_pool(module)
    scale, small = emit_scale(module), emit_small(module, tile)
    vector_products = _emit_vector_products(module, pool)
    shared = emit_shared_product(module, engine)
    part = _emit_part(module, engine.job, small, blocks)
    share = emit_shares(module, Divisible(part, tile.rows, tile.cols, shared, blocks.kc, even=True), serial_work)
    with module.function("product", PRODUCT) as fn:
        m, n, k, alpha, _a, _a_row, _a_col, _b, _b_row, _b_col, beta, c, ldc, _workspace, _pool, threads = fn.args
        with fn.when((m < 1) | (n < 1)):
            fn.ret()
        with fn.when((k < 1) | alpha.equals(0.0)):
            fn.call(scale, m, n, beta, c, ldc)
            fn.ret()
        done = fn.call(vector_products, *fn.args)
        with fn.when(done.differs(0)):
            fn.ret()
        alone = (m * n * k < serial_work) | (threads < 2)
        with fn.when(alone & _in_place(module, fn, blocks)):
            fn.call(small, 1, 0, 0, 0, *fn.args[: len(JOB)])
            fn.ret()
        fn.call(share, *fn.args)
        fn.finish()
    return fn


def _in_place(module: Module, fn: Function, blocks: Blocks) -> Value:
    """Emit a test, and return its result: whether one thread computes the product in place, without packing.

    The arguments of `fn` begin with `JOB`.
    """
    m, n, k, *_rest = fn.args
    small = is_small(m, n, k, blocks)
    return small | is_small_aligned(fn, fn.args, blocks) if module.lanes == 16 else small


def _emit_part(module: Module, multiply: Function, small: Function, blocks: Blocks) -> Function:
    """Emit `part(*JOB)`: one thread's part of a product, computed by `small` where that is faster than `multiply`."""
    with module.function("part", JOB) as fn:
        with fn.when(_in_place(module, fn, blocks)):
            fn.call(small, 1, 0, 0, 0, *fn.args)
            fn.ret()
        fn.call(multiply, *fn.args)
        fn.finish()
    return fn


def emit_shares(module: Module, engine: Divisible, serial_work: int = SERIAL_WORK) -> Function:
    """Emit a function with the arguments `PRODUCT` that divides the product of one engine among threads.

    Below `serial_work` multiply-adds it takes one thread. The module has the pool already. alpha and all extents are
    not 0.
    """
    multiply = engine.job
    task = _emit_matrix_task(module, multiply)
    with module.function(f"{multiply.name}_shares", PRODUCT) as fn:
        m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, ldc, workspace, pool_at, threads = fn.args
        work = m * n * k
        helpers = fn.select(work < serial_work, 1, worthwhile(fn, threads, work))
        with fn.when(helpers < 2):
            fn.call(multiply, *fn.args[: len(JOB)])
            fn.ret()
        rows = emitted_row_multiple(fn, engine.rows, helpers) if engine.even else engine.rows
        multiples, extents = (rows, engine.cols), (m, n, k)
        if engine.shared is None:
            grid = division(fn, multiples, extents, helpers)
        else:
            grid = division(fn, multiples, extents, helpers, packing_cost(fn, b_row, b_col), engine.kc)
            there = fn.load(fn.cast(pool_at + AREA, I64)).differs(0)
            taken = fn.var(I64, 0)
            with fn.when(there & grid.shared.differs(0)):
                taken.set(fn.call(module["pool_take"], pool_at))
            with fn.when(taken.differs(0)):
                fn.call(engine.shared, *fn.args[: len(JOB) - 1], pool_at, helpers, grid.rows, grid.cols, workspace)
                fn.call(module["pool_leave"], pool_at)
                fn.ret()
        words: list[Operand] = [m, n, k, a_row, a_col, b_row, b_col, ldc, fn.address(a), fn.address(b)]
        context = pack_words(fn, [*words, fn.address(c), 0, 0, grid.rows, grid.cols])
        floats = fn.cast(context, F32)
        floats[2 * _ALPHA] = alpha
        floats[2 * _BETA] = beta
        jobs = fn.ceil_div(n, grid.cols) * fn.ceil_div(m, grid.rows)
        run = fn.function_address(task)
        fn.call(module["pool_run"], pool_at, run, context, jobs, helpers, workspace)
        fn.finish()
    return fn


_ALPHA, _BETA, _ROWS, _COLS = 11, 12, 13, 14


def _emit_matrix_task(module: Module, multiply: Function) -> Function:
    params = list(zip(("context", "job", "workspace"), TASK_SIGNATURE, strict=True))
    with module.function(f"{multiply.name}_task", params) as fn:
        context, job, workspace = fn.args
        m, n, k, a_row, a_col, b_row, b_col, ldc = (context[index] for index in range(8))
        a, b, c = (fn.cast(context[index], F32) for index in (8, 9, 10))
        floats = fn.cast(context, F32)
        alpha, beta = floats[2 * _ALPHA], floats[2 * _BETA]
        rows, cols = context[_ROWS], context[_COLS]
        across = fn.ceil_div(n, cols)
        i0, j0 = job // across * rows, job % across * cols
        fn.call(
            multiply,
            fn.minimum(m - i0, rows),
            fn.minimum(n - j0, cols),
            k,
            alpha,
            a + a_row * i0,
            a_row,
            a_col,
            b + b_col * j0,
            b_row,
            b_col,
            beta,
            c + ldc * i0 + j0,
            ldc,
            workspace,
        )
        fn.finish()
    return fn


def emit_scale(module: Module) -> Function:
    """Emit `scale(m, n, beta, c, ldc)`: `C = beta * C`; if beta is 0, zeros are written and C is not read."""
    lanes = module.lanes
    params = [("m", I64), ("n", I64), ("beta", F32), ("c", FLOATS), ("ldc", I64)]
    with module.function("scale", params) as fn:
        m, n, beta, c, ldc = fn.args
        fresh = beta.equals(0.0)
        with fn.range(m) as i:
            row = c + ldc * i

            def sweep(mask: Value | None, j: Value, row: Value = row) -> None:
                with fn.choose(fresh) as which:
                    with which.yes():
                        fn.store(row + j, fn.constant(0.0, vector(F32, lanes)), mask)
                    with which.no():
                        fn.store(row + j, fn.load(row + j, lanes, mask) * beta, mask)

            whole = n - n % lanes
            with fn.range(0, whole, lanes) as j:
                sweep(None, j)
            with fn.when(whole < n):
                sweep(fn.first_lanes(n - whole, lanes), whole)
        fn.finish()
    return fn


def _emit_vector_products(module: Module, pool: Pool) -> Function:
    """Emit `vector_products(*PRODUCT)`, which computes a product with a single row or column and returns 1.

    It returns 0, without an effect, for other products, and for strides that neither `gemv_dot` nor `gemv_axpy` takes.
    """
    dot, axpy = emit_dot(module), emit_axpy(module)
    params = list(zip(("context", "job", "workspace"), TASK_SIGNATURE, strict=True))
    with module.function("dot_task", params) as task:
        context, job, _workspace = task.args
        floats = task.cast(context, F32)
        m, k, a_row, y_step, share = (context[index] for index in range(1, 6))
        a, x, y = (task.cast(context[index], F32) for index in (6, 7, 8))
        i0 = job * share
        count = task.minimum(m - i0, share)
        task.call(dot, count, k, floats[0], a + a_row * i0, a_row, x, floats[1], y + y_step * i0, y_step)
        task.finish()
    dot_task = task
    with module.function("axpy_task", params) as task:
        context, job, workspace = task.args
        floats = task.cast(context, F32)
        n, k, b_row, y_step, share, x_step = (context[index] for index in range(1, 7))
        b, x, y = (task.cast(context[index], F32) for index in (7, 8, 9))
        j0 = job * share
        count = task.minimum(n - j0, share)
        task.call(axpy, count, k, floats[0], x, x_step, b + j0, b_row, floats[1], y + y_step * j0, y_step, workspace)
        task.finish()
    axpy_task = task

    with module.function("vector_products", PRODUCT, I64) as fn:
        m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, ldc, workspace, pool_at, threads = fn.args

        def start(task: Function, length: Value, words: list[Operand]) -> None:
            helpers = fn.select(length * k < VECTOR_SERIAL, 1, threads)
            share = fn.ceil_div(fn.ceil_div(length, helpers), VECTOR_SHARE) * VECTOR_SHARE
            words[4] = share
            context = pack_words(fn, [0, *words])
            floats = fn.cast(context, F32)
            floats[0] = alpha
            floats[1] = beta
            jobs = fn.ceil_div(length, share)
            fn.call(pool.run, pool_at, fn.function_address(task), context, jobs, helpers, workspace)
            fn.ret(1)

        with fn.when(n.equals(1)):
            with fn.when(a_col.equals(1) & b_row.equals(1)):
                start(dot_task, m, [m, k, a_row, ldc, 0, fn.address(a), fn.address(b), fn.address(c)])
            with fn.when(a_row.equals(1)):
                start(axpy_task, m, [m, k, a_col, ldc, 0, b_row, fn.address(a), fn.address(b), fn.address(c)])
        with fn.when(m.equals(1)):
            with fn.when(b_row.equals(1) & a_col.equals(1)):
                start(dot_task, n, [n, k, b_col, 1, 0, fn.address(b), fn.address(a), fn.address(c)])
            with fn.when(b_col.equals(1)):
                start(axpy_task, n, [n, k, b_row, 1, 0, a_col, fn.address(b), fn.address(a), fn.address(c)])
        fn.finish(0)
    return fn
