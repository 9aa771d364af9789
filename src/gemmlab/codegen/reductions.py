"""Reductions by several threads: one long row, many rows, many columns.

However many threads there are, a row is cut into the same parts and columns are not cut at all along their length, so
results are the same to the bit.
"""

from __future__ import annotations

from gemmlab.codegen.pool import TASK_SIGNATURE, Pool, emit_pool, pack_words
from gemmlab.codegen.rowsum import emit_columns, emit_row
from gemmlab.codegen.runtime import SYMBOL
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I8, I64, pointer
from gemmlab.ir.values import Operand, Value

PARTS = 64
"""Of a long row, and jobs at most of many rows or columns."""
GRAIN = 64
"""Elements that a part is a multiple of: parts share no cache line where the row starts on one."""
SERIAL = 1 << 16
"""Elements below which one thread is faster: 256 KiB, some ten microseconds."""
LEAST_COLUMNS = 256
"""A job takes: a kilobyte of every row."""

ROW_SUMS, COLUMN_SUMS = "gemmlab_row_sums", "gemmlab_column_sums"
MANY = (("count", I64), ("length", I64), ("stride", I64), ("x", pointer(F32)), ("out", pointer(F32)), ("threads", I64))
"""Arguments of both entries: `count` results, each of `length` elements; rows of memory lie `stride` apart."""
_TASK = tuple(zip(("context", "job", "workspace"), TASK_SIGNATURE, strict=True))


def emit_sums(module: Module, operator: int) -> Function:
    """Emit `reduce_long(n, x, threads)`, and the exported entries for many rows and many columns."""
    module.imported(SYMBOL)
    pool, row = emit_pool(module), emit_row(module, operator)
    long = _emit_long(module, row, pool)
    _emit_rows(module, row, long, pool)
    _emit_columns(module, operator, pool)
    return long


def _run(fn: Function, pool: Pool, task: Function, words: list[Operand], jobs: Value, threads: Value) -> None:
    nothing = fn.cast(fn.index(0), F32)
    context = pack_words(fn, words)
    fn.call(
        pool.run, fn.symbol(f"@{SYMBOL}", I8), fn.function_address(task), context, jobs, threads, nothing
    )  # fmt: skip


def _emit_long(module: Module, row: Function, pool: Pool) -> Function:
    with module.function("long_part", _TASK) as fn:
        context, job, _workspace = fn.args
        n, share = context[0], context[1]
        x, sums = (fn.cast(context[index], F32) for index in (2, 3))
        first: Value = job * share
        sums[job] = fn.call(row, fn.minimum(n - first, share), x + first)
        fn.finish()
    part = fn
    with module.function("reduce_long", [("n", I64), ("x", pointer(F32)), ("threads", I64)], F32) as fn:
        n, x, threads = fn.args
        with fn.when(n < SERIAL):
            fn.ret(fn.call(row, n, x))
        share = fn.ceil_div(fn.ceil_div(n, PARTS), GRAIN) * GRAIN
        parts = fn.ceil_div(n, share)
        sums = fn.scratch(F32, PARTS)
        _run(fn, pool, part, [n, share, fn.address(x), fn.address(sums)], parts, threads)
        fn.finish(fn.call(row, parts, sums))
    return fn


def _emit_rows(module: Module, row: Function, long: Function, pool: Pool) -> None:
    with module.function("rows_part", _TASK) as fn:
        context, job, _workspace = fn.args
        count, length, stride, share = (context[index] for index in range(4))
        x, out = (fn.cast(context[index], F32) for index in (4, 5))
        first = job * share
        with fn.range(first, fn.minimum(first + share, count)) as r:
            out[r] = fn.call(row, length, x + r * stride)
        fn.finish()
    part = fn
    with module.function(ROW_SUMS, MANY, I64, exported=True) as fn:
        count, length, stride, x, out, threads = fn.args
        with fn.when(length >= SERIAL):
            with fn.range(count) as r:
                out[r] = fn.call(long, length, x + r * stride, threads)
            fn.ret(0)
        helpers = fn.select(count * length < SERIAL, 1, threads)
        share = fn.ceil_div(count, PARTS)
        words: list[Operand] = [count, length, stride, share, fn.address(x), fn.address(out)]
        _run(fn, pool, part, words, fn.ceil_div(count, share), helpers)
        fn.finish(0)


def _emit_columns(module: Module, operator: int, pool: Pool) -> None:
    columns = emit_columns(module, operator)
    with module.function("columns_part", _TASK) as fn:
        context, job, _workspace = fn.args
        count, length, stride, share = (context[index] for index in range(4))
        x, out = (fn.cast(context[index], F32) for index in (4, 5))
        first = job * share
        fn.call(columns, length, fn.minimum(count - first, share), stride, x + first, out + first)
        fn.finish()
    part = fn
    with module.function(COLUMN_SUMS, MANY, I64, exported=True) as fn:
        count, length, stride, x, out, threads = fn.args
        helpers = fn.select(count * length < SERIAL, 1, threads)
        share = fn.maximum(fn.ceil_div(fn.ceil_div(count, helpers), GRAIN) * GRAIN, LEAST_COLUMNS)
        words: list[Operand] = [count, length, stride, share, fn.address(x), fn.address(out)]
        _run(fn, pool, part, words, fn.ceil_div(count, share), helpers)
        fn.finish(0)
