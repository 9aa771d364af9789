"""Reductions along any axes, by several threads: a plan gives the elements of each result.

A plan is made in Python once for a layout (`dispatch/sum_plans.py`). The elements reduced to a result are a nest of
rows (`codegen/nests.py`). Either each result is reduced by itself, or adjacent results together, as columns
(`codegen/columns.py`). A result that is reduced by itself and has at least `SERIAL` terms is cut into parts for the
threads, the same for any number of threads; others are not cut. So results are the same to the bit for any number of
threads.
"""

from __future__ import annotations

from gemmlab.codegen.axes import unravelled
from gemmlab.codegen.columns import emit_columns
from gemmlab.codegen.nests import emit_apart, emit_nest
from gemmlab.codegen.pool import TASK_SIGNATURE, Pool, emit_pool, pack_words
from gemmlab.codegen.rowsum import IDENTITIES, combine, emit_row
from gemmlab.codegen.runtime import SYMBOL
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, F64, I8, I64, pointer
from gemmlab.ir.values import Operand, Value

PARTS = 64
"""The most parts into which one long row or nest is cut."""
GRAIN = 64
"""A part of a row, and a range of columns, has a multiple of this many elements, unless it is the last.

So threads share no cache line if the row starts at the beginning of one.
"""
SERIAL = 1 << 16
"""Elements below which one thread is faster: 256 KiB, some ten microseconds."""
LEAST_COLUMNS = 256
"""The fewest columns of a job, unless there are fewer in all: a kilobyte of every row."""
_JOBS_A_THREAD = 8

SUMS = "gemmlab_sums"
ENTRY = (("plan", pointer(I64)), ("x", pointer(I8)), ("out", pointer(I8)), ("threads", I64))
PLAN = (
    "by_columns", "x_first", "out_first", "times", "elements", "terms", "results", "result_axes", "length", "apart",
    "middle", "middle_apart", "nest_at", "nest_axes", "cols", "col_apart", "out_apart", "free_at", "free_axes",
    "dims_at",
)  # fmt: skip
"""Names of the 64-bit words with which a plan begins, in order. Distances are in bytes.

    by_columns                      1 if adjacent results are reduced together
    x_first, out_first              distances of the first element and of the first result from `x` and `out`
    times                           factor of every result
    elements, terms, results        elements in all, elements of each result, results
    result_axes                     axes of the results
    length .. nest_axes             the nest of the first result, as in `nests.NEST`
    cols, col_apart, out_apart      the axis of columns, else the longest axis of results: extent, step in x and in out
    free_axes                       number of the other axes of results

Words that end in `_at` are positions of lists in the plan. `nest_at`: extent and step of the nest's outer axes.
`free_at`: extent, step in x and step in out of the other axes of results. `dims_at`: extents of the result.
"""
_TASK = tuple(zip(("context", "job", "workspace"), TASK_SIGNATURE, strict=True))


class _Plan:
    """The words of a plan as values, by name."""

    def __init__(self, plan: Value) -> None:
        self._plan = plan

    def __getattr__(self, name: str) -> Value:
        return self._plan[PLAN.index(name)]

    def axes(self, name: str) -> Value:
        """Return the address of the list in the plan whose position is the word `name`."""
        return self._plan + self._plan[PLAN.index(name)]

    def nest(self, x: Value, first: Operand, end: Operand) -> tuple[Operand, ...]:
        """Return the arguments `nests.NEST` for rows `first` to `end` - 1 of a result whose first term is at `x`."""
        middle = (self.middle, self.middle_apart)
        return (x, first, end, self.length, self.apart, *middle, self.axes("nest_at"), self.nest_axes)


def emit_sums(module: Module, operator: int) -> Function:
    """Emit the reductions by one operator, and return `reduce_long(n, x, threads)`, which reduces a contiguous row.

    The exported function `gemmlab_sums(*ENTRY)` reduces along any axes and returns 0.
    """
    module.imported(SYMBOL)
    pool, row = emit_pool(module), emit_row(module, operator)
    apart = emit_apart(module, operator)
    nest = emit_nest(module, operator, apart)
    long = _emit_long(module, row, apart, pool)
    whole = _emit_whole(module, operator, row, nest, pool)
    rows = _emit_rows_part(module, row, nest, apart)
    columns = _emit_columns_part(module, operator)
    with module.function(SUMS, ENTRY, I64, exported=True) as fn:
        plan_at, x, out, threads = fn.args
        plan = _Plan(plan_at)
        first, to = x + plan.x_first, out + plan.out_first
        helpers = fn.select(plan.elements < SERIAL, 1, threads)
        shares = fn.select(helpers < 2, 1, helpers * _JOBS_A_THREAD)

        def run(task: Function, count: Value, share: Value, more: Value) -> None:
            words: list[Operand] = [fn.address(plan_at), fn.address(first), fn.address(to), count, share, more]
            _run(fn, pool, task, words, fn.ceil_div(count, share), helpers)

        with fn.when(plan.by_columns.differs(0)):
            width = fn.ceil_div(fn.ceil_div(plan.cols, helpers), GRAIN) * GRAIN
            width = fn.minimum(fn.maximum(width, LEAST_COLUMNS), plan.cols)
            units = plan.results // plan.cols * fn.ceil_div(plan.cols, width)
            run(columns, units, fn.ceil_div(units, shares), width)
            fn.ret(0)
        with fn.when(plan.terms < SERIAL):
            run(rows, plan.results, fn.ceil_div(plan.results, shares), fn.index(0))
            fn.ret(0)
        with fn.range(plan.results) as result:
            moved, moved_out = _place(fn, plan, result)
            value = fn.call(whole, plan_at, first + moved, threads)
            _store(fn, plan, to + moved_out, value)
        fn.finish(0)
    return long


def _store(fn: Function, plan: _Plan, place: Value, value: Value) -> None:
    times = fn.emit(F64, f"sitofp i64 {plan.times.name} to double")
    fn.store(fn.cast(place, F32), fn.convert(fn.convert(value, F64) * times, F32))


def _place(fn: Function, plan: _Plan, result: Value) -> tuple[Value, Value]:
    """Emit the byte offsets of the first term of result number `result` in x and of the result in out; return both."""
    cols = plan.cols
    outer = result // cols
    inner = result - outer * cols
    moved, moved_out = unravelled(fn, outer, plan.axes("free_at"), plan.free_axes, 2)
    return moved + inner * plan.col_apart, moved_out + inner * plan.out_apart


def _run(fn: Function, pool: Pool, task: Function, words: list[Operand], jobs: Value, threads: Value) -> None:
    nothing = fn.cast(fn.index(0), F32)
    context = pack_words(fn, words)
    fn.call(
        pool.run, fn.symbol(f"@{SYMBOL}", I8), fn.function_address(task), context, jobs, threads, nothing
    )  # fmt: skip


def _emit_long(module: Module, row: Function, apart: Function, pool: Pool) -> Function:
    """Emit `reduce_long_apart(n, x, apart, threads)`, and return `reduce_long(n, x, threads)`, for contiguous rows.

    From `SERIAL` elements on, threads share the work.
    """
    with module.function("long_part", _TASK) as fn:
        context, job, _workspace = fn.args
        n, share, step = context[0], context[1], context[2]
        x, sums = fn.cast(context[3], I8), fn.cast(context[4], F32)
        first: Value = job * share
        sums[job] = fn.call(apart, fn.minimum(n - first, share), x + first * step, step)
        fn.finish()
    part = fn
    with module.function(
        "reduce_long_apart", [("n", I64), ("x", pointer(I8)), ("apart", I64), ("threads", I64)], F32
    ) as fn:
        n, x, step, threads = fn.args
        with fn.when(n < SERIAL):
            fn.ret(fn.call(apart, n, x, step))
        share = fn.ceil_div(fn.ceil_div(n, PARTS), GRAIN) * GRAIN
        parts = fn.ceil_div(n, share)
        sums = fn.scratch(F32, PARTS)
        _run(fn, pool, part, [n, share, step, fn.address(x), fn.address(sums)], parts, threads)
        fn.finish(fn.call(row, parts, sums))
    any_step = fn
    with module.function("reduce_long", [("n", I64), ("x", pointer(F32)), ("threads", I64)], F32) as fn:
        fn.finish(fn.call(any_step, fn.args[0], fn.cast(fn.args[1], I8), 4, fn.args[2]))
    return fn


def _emit_whole(module: Module, operator: int, row: Function, nest: Function, pool: Pool) -> Function:
    """Emit `reduce_whole(plan, x, threads)`: one float, a result of many terms, which threads share; `x` is its first
    term.
    """
    long_apart = module["reduce_long_apart"]
    with module.function("whole_part", _TASK) as fn:
        context, job, _workspace = fn.args
        plan, x, sums = _Plan(fn.cast(context[0], I64)), fn.cast(context[1], I8), fn.cast(context[2], F32)
        count, share = context[3], context[4]
        first = job * share
        sums[job] = fn.call(nest, *plan.nest(x, first, fn.minimum(first + share, count)))
        fn.finish()
    part = fn
    with module.function("reduce_whole", [("plan", pointer(I64)), ("x", pointer(I8)), ("threads", I64)], F32) as fn:
        plan_at, x, threads = fn.args
        plan = _Plan(plan_at)
        count = plan.terms // plan.length
        with fn.when(count.equals(1)):
            fn.ret(fn.call(long_apart, plan.length, x, plan.apart, threads))
        with fn.when((count < PARTS) & (plan.length >= SERIAL)):
            total = fn.var(F64, IDENTITIES[operator])
            with fn.range(count) as index:
                outer = index // plan.middle
                (moved,) = unravelled(fn, outer, plan.axes("nest_at"), plan.nest_axes, 1)
                place = x + (moved + (index - outer * plan.middle) * plan.middle_apart)
                some = fn.call(long_apart, plan.length, place, plan.apart, threads)
                total.set(combine(fn, operator, total.read(), fn.convert(some, F64)))
            fn.ret(fn.convert(total.read(), F32))
        share = fn.ceil_div(count, PARTS)
        parts = fn.ceil_div(count, share)
        sums = fn.scratch(F32, PARTS)
        words: list[Operand] = [fn.address(plan_at), fn.address(x), fn.address(sums), count, share]
        _run(fn, pool, part, words, parts, threads)
        fn.finish(fn.call(row, parts, sums))
    return fn


def _emit_rows_part(module: Module, row: Function, nest: Function, apart: Function) -> Function:
    """Emit a task of the pool: each job reduces some results, each by itself."""
    with module.function("rows_part", _TASK) as fn:
        context, job, _workspace = fn.args
        plan, x, out = _Plan(fn.cast(context[0], I64)), fn.cast(context[1], I8), fn.cast(context[2], I8)
        count, share = context[3], context[4]
        first = job * share
        end = fn.minimum(first + share, count)
        rows, cols = plan.terms // plan.length, plan.cols
        at = fn.var(I64, first)
        with fn.loop() as done:
            here = at.read()
            fn.leave_if(done, here >= end)
            many = fn.minimum(cols - here % cols, end - here)
            moved, moved_out = _place(fn, plan, here)
            x_at, out_at = fn.var(pointer(I8), x + moved), fn.var(pointer(I8), out + moved_out)
            with fn.range(many):
                value = fn.var(F32)
                with fn.choose(rows.equals(1)) as how:
                    with how.yes(), fn.choose(plan.apart.equals(4)) as step:
                        with step.yes():
                            value.set(fn.call(row, plan.length, fn.cast(x_at.read(), F32)))
                        with step.no():
                            value.set(fn.call(apart, plan.length, x_at, plan.apart))
                    with how.no():
                        value.set(fn.call(nest, *plan.nest(x_at.read(), 0, rows)))
                _store(fn, plan, out_at.read(), value.read())
                x_at.set(x_at + plan.col_apart)
                out_at.set(out_at + plan.out_apart)
            at.set(here + many)
        fn.finish()
    return fn


def _emit_columns_part(module: Module, operator: int) -> Function:
    """Emit a task of the pool: each job reduces some ranges of columns."""
    columns = emit_columns(module, operator)
    with module.function("columns_part", _TASK) as fn:
        context, job, _workspace = fn.args
        plan, x, out = _Plan(fn.cast(context[0], I64)), fn.cast(context[1], I8), fn.cast(context[2], I8)
        count, share, width = context[3], context[4], context[5]
        stretches = fn.ceil_div(plan.cols, width)
        times = fn.emit(F64, f"sitofp i64 {plan.times.name} to double")
        first = job * share
        with fn.range(first, fn.minimum(first + share, count)) as unit:
            outer = unit // stretches
            start = (unit - outer * stretches) * width
            moved, moved_out = unravelled(fn, outer, plan.axes("free_at"), plan.free_axes, 2)
            cols = fn.minimum(plan.cols - start, width)
            place = x + (moved + start * plan.col_apart)
            to = out + (moved_out + start * plan.out_apart)
            nest = plan.nest(place, 0, plan.terms // plan.length)
            fn.call(columns, cols, plan.col_apart, *nest, times, to, plan.out_apart)
        fn.finish()
    return fn
