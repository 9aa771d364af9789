"""Many numbers into one on a CPU: how two are combined, and a row by vectors, its terms in short chains.

    x       [ block 0            | block 1            | .. | rest ]
    block     CHAIN turns of ACCUMULATORS vectors: every lane of every accumulator adds CHAIN numbers
    total     a vector; each block's accumulators are added to it as a tree

A term goes through CHAIN additions in its block, three in the block's tree, and one for each block from there on: sums
of a million terms are as accurate as NumPy's, which halves the row again and again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I64, Type, pointer, vector
from gemmlab.ir.values import Operand, Value, Var

ACCUMULATORS = 8
"""Vectors added to in turn: an addition takes four cycles, and two start in each."""
CHAIN = 64
SUM, MAX, MIN = 0, 1, 2
IDENTITIES = (0.0, -math.inf, math.inf)


def combine(fn: Function, operator: int, left: Value, right: Operand) -> Value:
    """The sum, the greater or the lesser; NaN where either is."""
    if operator == SUM:
        return left + right
    type_ = left.type
    suffix = f"v{type_.lanes}f32" if type_.lanes > 1 else "f32"
    name = f"llvm.{'maximum' if operator == MAX else 'minimum'}.{suffix}"
    fn.declare(name, f"declare {type_} @{name}({type_}, {type_})")
    other = fn.constant(right, type_)
    return fn.emit(type_, f"call {type_} @{name}({type_} {left.name}, {type_} {other.name})")


def tree(fn: Function, operator: int, values: Sequence[Value]) -> Value:
    """All of them, neighbours first."""
    found = list(values)
    while len(found) > 1:
        pairs = [combine(fn, operator, one, two) for one, two in zip(found[::2], found[1::2], strict=False)]
        found = pairs + found[2 * len(pairs) :]
    return found[0]


def lanes_into_one(fn: Function, operator: int, value: Value) -> Value:
    """A vector's lanes, halves first."""
    while value.type.lanes > 1:
        half = value.type.lanes // 2
        low, high = fn.shuffle(value, value, range(half)), fn.shuffle(value, value, range(half, 2 * half))
        value = combine(fn, operator, low, high)
    return value


def emit_row(module: Module, operator: int) -> Function:
    """Emit `reduce_row(n, x)`: one float from `n` neighbours."""
    lanes = module.lanes
    wide, turn = vector(F32, lanes), lanes * ACCUMULATORS
    with module.function("reduce_row", [("n", I64), ("x", pointer(F32))], F32) as fn:
        n, x = fn.args
        total = fn.var(wide, IDENTITIES[operator])
        whole = n - n % turn
        with fn.range(0, whole, turn * CHAIN) as start:
            parts = [fn.var(wide, IDENTITIES[operator]) for _ in range(ACCUMULATORS)]
            with fn.range(start, fn.minimum(start + turn * CHAIN, whole), turn) as i:
                for index, part in enumerate(parts):
                    part.set(combine(fn, operator, part.read(), fn.load(x + (i + index * lanes), lanes)))
            total.set(combine(fn, operator, total.read(), tree(fn, operator, [part.read() for part in parts])))
        _rest(fn, operator, x, whole, n, total, wide)
        fn.finish(lanes_into_one(fn, operator, total.read()))
    return fn


def _rest(fn: Function, operator: int, x: Value, first: Value, n: Value, total: Var, wide: Type) -> None:
    """What is less than a turn: whole vectors, then a part of one."""
    lanes = wide.lanes
    vectors = n - n % lanes
    with fn.range(first, vectors, lanes) as i:
        total.set(combine(fn, operator, total.read(), fn.load(x + i, lanes)))
    with fn.when(vectors < n):
        mask = fn.first_lanes(n - vectors, lanes)
        some = fn.select(mask, fn.load(x + vectors, lanes, mask), fn.constant(IDENTITIES[operator], wide), wide)
        total.set(combine(fn, operator, total.read(), some))


COLUMN_ROWS = 8
"""Rows added to the columns' sums at once, as a tree: so many streams of memory."""
TILE = 2048
"""Columns swept at a time: the sums of a block of rows and of all rows so far, 8 KiB each, stay in the first cache."""
LEAST_ROWS = 64


def emit_columns(module: Module, operator: int) -> Function:
    """Emit `reduce_columns(rows, cols, stride, x, out)`: `out[c]` from all `x[r * stride + c]`.

    Rows go by eight, in blocks of about the square root of eight times their number: then as many additions lie in a
    block as between blocks, and a term goes through fewer than the square root of the number of rows.
    """
    lanes, floats = module.lanes, pointer(F32)
    params = [("rows", I64), ("cols", I64), ("stride", I64), ("x", floats), ("out", floats)]
    with module.function("reduce_columns", params) as fn:
        rows, cols, stride, x, out = fn.args
        block = fn.scratch(F32, TILE)
        rows_a_block = fn.var(I64, LEAST_ROWS)
        with fn.loop() as enough:
            fn.leave_if(enough, rows_a_block * rows_a_block.read() >= rows * COLUMN_ROWS)
            rows_a_block.set(rows_a_block * 2)
        step = rows_a_block.read()
        identity = fn.constant(IDENTITIES[operator], vector(F32, lanes))
        with fn.range(0, cols, TILE) as first_col:
            width = fn.minimum(cols - first_col, TILE)
            here, to = x + first_col, out + first_col
            _across(fn, lanes, width, to, lambda _c, _mask: identity)
            with fn.range(0, rows, step) as start:
                end = fn.minimum(start + step, rows)
                _across(fn, lanes, width, block, lambda _c, _mask: identity)
                whole = end - (end - start) % COLUMN_ROWS
                with fn.range(start, whole, COLUMN_ROWS) as row:
                    _add_rows(fn, operator, lanes, width, here + row * stride, stride, COLUMN_ROWS, block)
                at = fn.var(I64, whole)
                for count in (4, 2, 1):
                    with fn.when(at + count <= end):
                        _add_rows(fn, operator, lanes, width, here + at * stride, stride, count, block)
                        at += count
                _add_rows(fn, operator, lanes, width, block, fn.index(0), 1, to)
        fn.finish()
    return fn


_Some = Callable[[Value, "Value | None"], Value]


def _across(fn: Function, lanes: int, width: Value, to: Value, values: _Some) -> None:
    """Write `values(c, mask)` to `to[c]` for `width` columns, vector by vector."""
    vectors = width - width % lanes
    with fn.range(0, vectors, lanes) as c:
        fn.store(to + c, values(c, None))
    with fn.when(vectors < width):
        mask = fn.first_lanes(width - vectors, lanes)
        fn.store(to + vectors, values(vectors, mask), mask)


def _add_rows(
    fn: Function, operator: int, lanes: int, width: Value, x: Value, stride: Value, count: int, to: Value
) -> None:
    """`to[c]` and the tree of `count` rows at `x`, for `width` columns."""

    def some(c: Value, mask: Value | None) -> Value:
        rows = [fn.load(x + stride * row + c, lanes, mask) for row in range(count)]
        return combine(fn, operator, fn.load(to + c, lanes, mask), tree(fn, operator, rows))

    _across(fn, lanes, width, to, some)


def row_roundings(n: int) -> int:
    """Additions in a row that a term goes through at most, whatever the width (4 lanes and more)."""
    blocks = -(-n // (4 * ACCUMULATORS * CHAIN))
    # In its block, in the block's tree, from block to block; vectors behind the last turn; lanes.
    return CHAIN + 3 + blocks + ACCUMULATORS + 4
