"""Reductions of columns: adjacent elements belong to different results, and rows are added to each other.

Eight rows at a time are added as a tree, and their sum is added to the sums of a block, which stay in the L1 cache.
After `CHAIN` such additions the block's sums are added to the totals, in double precision. So a term goes through some
seventy float32 additions in a row, however many rows there are. A maximum or minimum goes the same way.
"""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.codegen.nests import NEST, for_rows
from gemmlab.codegen.rowsum import CHAIN, IDENTITIES, combine, tree
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, F64, I8, I64, pointer, vector
from gemmlab.ir.values import Operand, Value

COLUMN_ROWS = 8
"""Rows added at once, each a stream from memory."""
TILE = 1024
"""Columns reduced at a time: their block sums take 4 KiB, their totals 8 KiB."""
COLUMNS = (
    ("cols", I64),
    ("col_apart", I64),
    *NEST,
    ("times", F64),
    ("out", pointer(I8)),
    ("out_apart", I64),
)
"""Arguments of `reduce_columns`: `cols` columns of equal shape, each `col_apart` bytes after the one before.

`NEST` describes the terms of the first column. Each column has one result; the results are multiplied by `times`, and
lie at `out`, `out_apart` bytes from each other.
"""


def emit_columns(module: Module, operator: int) -> Function:
    """Emit `reduce_columns(*COLUMNS)`: one float for each column."""
    with module.function("reduce_columns", COLUMNS) as fn:
        cols, col_apart, x, *nest, times, out, out_apart = fn.args
        first_row, end_row, length, apart = nest[:4]
        with fn.when(col_apart.equals(4) & out_apart.equals(4) & (end_row - first_row).equals(1)):
            for rows in range(1, COLUMN_ROWS + 1):
                with fn.when(length.equals(rows)):
                    _few(fn, operator, module.lanes, cols, [x + apart * index for index in range(rows)], times, out)
                    fn.ret()
        with fn.range(0, cols, TILE) as first:
            width = fn.minimum(cols - first, TILE)
            with fn.choose(col_apart.equals(4)) as how:
                for arm, lanes in ((how.yes, module.lanes), (how.no, 1)):
                    with arm():
                        here = x + first * col_apart
                        totals = _sweep(fn, operator, lanes, width, col_apart, here, nest)
                        _write(fn, lanes, width, totals, times, out + first * out_apart, out_apart)
        fn.finish()
    return fn


def _few(fn: Function, operator: int, lanes: int, cols: Value, rows: list[Value], times: Value, out: Value) -> None:
    """Emit the reduction of `cols` adjacent columns, with one term in each of `rows` (addresses), as one tree.

    The results are multiplied by `times` and written to adjacent places from `out` on.
    """
    wide, scale = vector(F32, lanes), fn.splat(times, lanes)

    def some(c: Value, mask: Value | None) -> None:
        total = tree(fn, operator, [fn.load(fn.cast(row, F32) + c, lanes, mask) for row in rows])
        fn.store(fn.cast(out, F32) + c, total, mask)

    def multiplied(c: Value, mask: Value | None) -> None:
        place = fn.cast(out, F32) + c
        wider = fn.convert(fn.load(place, lanes, mask), vector(F64, lanes))
        fn.store(place, fn.convert(wider * scale, wide), mask)

    _across(lanes, cols)(fn, some)
    with fn.when(times.differs(1.0)):
        _across(lanes, cols)(fn, multiplied)


def _sweep(
    fn: Function, operator: int, lanes: int, width: Value, col_apart: Value, x: Value, nest: list[Value]
) -> Value:
    """Emit the reduction of `width` columns, and return the address of their totals, as doubles.

    With `lanes` > 1 the columns must be adjacent.
    """
    first, end, length, apart, middle, middle_apart, axes, count = nest
    block, totals = fn.scratch(F32, TILE), fn.scratch(F64, TILE)
    added = fn.var(I64, 0)
    of_block, of_totals = (fn.constant(IDENTITIES[operator], vector(kind, lanes)) for kind in (F32, F64))
    across = _across(lanes, width)

    def at(row: Value, c: Value) -> Value:
        return fn.cast(row + c * (4 if lanes > 1 else col_apart), F32)

    def add_rows(row: Value, rows: int) -> None:
        def some(c: Value, mask: Value | None) -> None:
            found = [fn.load(at(row + apart * index, c), lanes, mask) for index in range(rows)]
            place = block + c
            fn.store(place, combine(fn, operator, fn.load(place, lanes, mask), tree(fn, operator, found)), mask)

        across(fn, some)
        added.set(added + 1)

    def flush() -> None:
        def some(c: Value, mask: Value | None) -> None:
            part = fn.convert(fn.load(block + c, lanes, mask), vector(F64, lanes))
            # Whole vectors are safe: there is room after the last column.
            fn.store(totals + c, combine(fn, operator, fn.load(totals + c, lanes), part))
            fn.store(block + c, of_block, mask)

        across(fn, some)
        added.set(0)

    def start(c: Value, mask: Value | None) -> None:
        fn.store(totals + c, of_totals)
        fn.store(block + c, of_block, mask)

    def rows_from(place: Value) -> None:
        row = fn.var(pointer(I8), place)
        whole = length - length % COLUMN_ROWS
        with fn.range(0, whole, COLUMN_ROWS):
            add_rows(row.read(), COLUMN_ROWS)
            row.set(row + apart * COLUMN_ROWS)
            with fn.when(added >= CHAIN):
                flush()
        for rows in (4, 2, 1):
            with fn.when((length & rows).differs(0)):
                add_rows(row.read(), rows)
                row.set(row + apart * rows)
        with fn.when(added >= CHAIN):
            flush()

    across(fn, start)
    for_rows(fn, (first, end), (middle, middle_apart), axes, count, x, rows_from)
    flush()
    return totals


def _write(fn: Function, lanes: int, width: Value, totals: Value, times: Value, out: Value, out_apart: Value) -> None:
    with fn.choose(out_apart.equals(4)) as how:
        with how.yes():
            row = fn.cast(out, F32)

            def some(c: Value, mask: Value | None) -> None:
                fn.store(row + c, fn.convert(fn.load(totals + c, lanes) * times, vector(F32, lanes)), mask)

            _across(lanes, width)(fn, some)
        with how.no(), fn.range(width) as c:
            fn.store(fn.cast(out + c * out_apart, F32), fn.convert(totals[c] * times, F32))


def _across(lanes: int, width: Value) -> Callable[[Function, Callable[[Value, Value | None], None]], None]:
    """Return a function `run(fn, body)` that emits `body(c, mask)` for each vector of the columns 0 to `width` - 1.

    `c` is the vector's first column; `mask` excludes columns after the last, and is None for whole vectors.
    """

    def run(fn: Function, body: Callable[[Value, Value | None], None]) -> None:
        vectors: Operand = width - width % lanes if lanes > 1 else width
        with fn.range(0, vectors, lanes) as c:
            body(c, None)
        if lanes > 1:
            with fn.when(width > vectors):
                body(fn.index(vectors), fn.first_lanes(width - vectors, lanes))

    return run


def column_roundings() -> int:
    """Return the most float32 additions that a term goes through: in its block, in the tree of rows, and at the end."""
    return CHAIN + COLUMN_ROWS + 3 + 2
