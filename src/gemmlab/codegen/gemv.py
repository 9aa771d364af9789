"""Products with a single row or column: one pass over the matrix at the speed of memory.

`dot` is for a matrix that is contiguous along k: four rows at a time, each a dot product in vector lanes. `axpy` is for
a matrix that is contiguous along the result: several rows at a time, one for each step of k, are scaled and added to
the result, so that memory is read in as many forward streams. The results do not depend on that number.
"""

from __future__ import annotations

from gemmlab.codegen.microkernel import FLOATS
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I64, vector
from gemmlab.ir.values import Operand, Value

_DOT_ROWS = 4
_DOT_UNROLL = 2
_AXPY_ROWS, _CONFLICTING_ROWS, _CONFLICT = 8, 6, 1024
"""Rows that `axpy` adds at a time; fewer where rows are a multiple of `_CONFLICT` floats, 4 KiB, apart: eight such rows
fill all ways of a set of the L1 cache."""
_AHEAD = 64
"""Floats by which `axpy` prefetches ahead in each row: hardware does not prefetch beyond a page of 4 KiB."""
AXPY_COLS = 4096
"""Elements of y that `axpy` sums in its workspace before it writes them: half of an L1 cache of 32 KiB."""

DOT = (
    ("m", I64),
    ("k", I64),
    ("alpha", F32),
    ("a", FLOATS),
    ("a_row", I64),
    ("x", FLOATS),
    ("beta", F32),
    ("y", FLOATS),
    ("y_step", I64),
)
AXPY = (
    ("n", I64),
    ("k", I64),
    ("alpha", F32),
    ("x", FLOATS),
    ("x_step", I64),
    ("b", FLOATS),
    ("b_row", I64),
    ("beta", F32),
    ("y", FLOATS),
    ("y_step", I64),
    ("workspace", FLOATS),
)


def update(fn: Function, where: Value, total: Value, alpha: Value, beta: Value) -> None:
    """Emit `*where = alpha * total + beta * *where` for one element, which is not read if beta == 0."""
    with fn.choose(beta.equals(0.0)) as fresh:
        with fresh.yes():
            fn.store(where, total * alpha)
        with fresh.no():
            fn.store(where, fn.fma(beta, fn.load(where), total * alpha))


def emit_dot(module: Module) -> Function:
    """Emit `gemv_dot(*DOT)`: `y[i * y_step] = alpha * sum_p a[i, p] x[p] + beta * y[i * y_step]`.

    x and the rows of a are contiguous.
    """
    lanes = module.lanes
    with module.function("gemv_dot", DOT) as fn:
        m, k, alpha, a, a_row, x, beta, y, y_step = fn.args
        step = lanes * _DOT_UNROLL
        main, whole = k - k % step, k - k % lanes
        mask = fn.first_lanes(k - whole, lanes)

        def rows_at(first: Operand, count: int) -> None:
            rows = [a + a_row * (fn.index(first) + r) for r in range(count)]
            acc = [[fn.var(vector(F32, lanes), 0.0) for _ in range(_DOT_UNROLL)] for _ in rows]

            def add(p: Operand, part: int, use: Value | None) -> None:
                right = fn.load(x + p, lanes, use)
                for row, sums in zip(rows, acc, strict=True):
                    sums[part].set(fn.fma(fn.load(row + p, lanes, use), right, sums[part].read()))

            with fn.range(0, main, step) as p:
                for part in range(_DOT_UNROLL):
                    add(p + part * lanes, part, None)
            with fn.range(main, whole, lanes) as p:
                add(p, 0, None)
            with fn.when(whole < k):
                add(whole, 0, mask)
            for r, sums in enumerate(acc):
                total = sums[0].read()
                for other in sums[1:]:
                    total = total + other.read()
                update(fn, y + y_step * (fn.index(first) + r), fn.lane_sum(total), alpha, beta)

        grouped = m - m % _DOT_ROWS
        with fn.range(0, grouped, _DOT_ROWS) as i:
            rows_at(i, _DOT_ROWS)
        with fn.range(grouped, m) as i:
            rows_at(i, 1)
        fn.finish()
    return fn


def emit_axpy(module: Module) -> Function:
    """Emit `gemv_axpy(*AXPY)`: `y[j * y_step] = alpha * sum_p x[p * x_step] b[p, j] + beta * y[j * y_step]`.

    The rows of b are contiguous; `workspace` has room for `AXPY_COLS` floats.
    """
    lanes = module.lanes
    with module.function("gemv_axpy", AXPY, noalias=("workspace",)) as fn:
        n, k, alpha, x, x_step, b, b_row, beta, y, y_step, sums = fn.args
        with fn.range(0, n, AXPY_COLS) as j0:
            cols = fn.minimum(n - j0, AXPY_COLS)
            with fn.range(0, cols, lanes) as j:
                fn.store(sums + j, fn.constant(0.0, vector(F32, lanes)))
            whole = cols - cols % lanes
            mask = fn.first_lanes(cols - whole, lanes)

            def rows_at(p: Value, count: int) -> None:
                scale = [fn.splat(fn.load(x + x_step * (p + r)), lanes) for r in range(count)]
                rows = [b + b_row * (p + r) + j0 for r in range(count)]

                def add(j: Value, use: Value | None) -> None:
                    total = fn.load(sums + j, lanes)
                    for factor, row in zip(scale, rows, strict=True):
                        fn.prefetch(row + (j + _AHEAD))
                        total = fn.fma(factor, fn.load(row + j, lanes, use), total)
                    fn.store(sums + j, total)

                with fn.range(0, whole, lanes) as j:
                    add(j, None)
                with fn.when(whole < cols):
                    add(whole, mask)

            grouped = fn.var(I64, 0)
            with fn.choose((b_row % _CONFLICT).equals(0)) as conflict:
                for way, count in ((conflict.yes, _CONFLICTING_ROWS), (conflict.no, _AXPY_ROWS)):
                    with way():
                        grouped.set(k - k % count)
                        with fn.range(0, grouped.read(), count) as p:
                            rows_at(p, count)
            with fn.range(grouped.read(), k) as p:
                rows_at(p, 1)
            with fn.range(cols) as j:
                update(fn, y + y_step * (j0 + j), fn.load(sums + j), alpha, beta)
        fn.finish()
    return fn
