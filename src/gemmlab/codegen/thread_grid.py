"""The division of C among threads: the cheapest grid of rectangles, one for each thread.

Costs are in multiply-adds of one core. For each step of k, a rectangle of r x c costs r * c of them, and each of its
rows and columns costs the time to bring an element of A or B into the core's own caches. With two threads, the costs
decide whether C is cut into upper and lower or left and right halves. With many threads, they prevent thin rectangles:
a thread with one strip of B would read its rows of A for only 32 columns. docs/many-cores.md has the model that the
figures come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gemmlab.ir.function import Function
from gemmlab.ir.types import I64
from gemmlab.ir.values import Operand, Value, Var

ROW = COLUMN = 10
"""Cost, in multiply-adds, of bringing an element of A (`ROW`) or of B (`COLUMN`) into a core's own caches. `COLUMN`
contains nothing for packing B: of contiguous rows, it overlaps with multiply-adds; otherwise `packing_cost` is added.
"""
TRANSPOSED, SCATTERED = 10, 80
"""Cost of packing an element of B in addition to `COLUMN`, in multiply-adds: if B's columns are contiguous, and if
neither rows nor columns are. Nothing hides this cost.
"""
LEAST_ROWS, FEW_THREADS = 4, 8
"""With up to `FEW_THREADS` threads, rows of a rectangle are a multiple of `LEAST_ROWS`. Whole tiles would leave the
threads less even shares of small products: of 100 rows, tiles of 12 make 60 and 40. The price is a lower tile at the
end of each rectangle. With more threads rows are whole tiles: by the forecast for 128 threads, more rectangles cost
more than they save.
"""
TURN = 50_000
"""Cost of one call of the pool (a turn) for each of its threads, in multiply-adds: half a microsecond, because threads
join one by one.
"""


def alone_cost(rows: Any, cols: Any, k: Any, element: Any) -> Any:
    """Return the cost of a rectangle of `rows` x `cols` whose thread packs for itself.

    `element` is the cost of packing an element of B in addition to `COLUMN`. Arguments are numbers, or values of code
    under construction; so is the result. The same is true of `shared_cost` and `too_many`.
    """
    return k * (rows * cols + rows * ROW + cols * (COLUMN + element))


def shared_cost(rows: Any, cols: Any, k: Any, element: Any, n: Any, threads: Any, kc: int) -> Any:
    """Return the cost, in multiply-adds, of a thread's `rows` x `cols` of C if all `threads` pack B together.

    B has `n` columns and is packed in k-blocks of `kc` steps; `element` is as in `alone_cost`.
    """
    return alone_cost(rows, cols, k, 0) + k * element * (n // threads) + (k // kc + 1) * threads * TURN


def row_multiple(tile_rows: int, threads: int) -> int:
    """Return the number that the rows of a rectangle are a multiple of; `emitted_row_multiple` is the same for code."""
    return tile_rows if threads > FEW_THREADS else LEAST_ROWS


def emitted_row_multiple(fn: Function, tile_rows: int, threads: Value) -> Value:
    """Emit what `row_multiple` computes, for a number of threads that is known only when the code runs; return it."""
    return fn.select(threads > FEW_THREADS, tile_rows, LEAST_ROWS)


def too_many(threads: Any, work: Any) -> Any:
    """Return whether a product of `work` multiply-adds is slower with this many threads than with fewer.

    A call costs `TURN` times the square of the number of threads. Two threads are never too many.
    """
    return (threads > 2) & (threads * threads * TURN > work)


@dataclass(frozen=True, slots=True)
class Division:
    """Rows and columns of a rectangle, and 1 if the threads pack B together, else 0."""

    rows: Value
    cols: Value
    shared: Value


@dataclass(frozen=True, slots=True)
class _Best:
    """Variables of the cheapest grid so far: its cost in multiply-adds, and the rows and columns of a rectangle."""

    cost: Var
    rows: Var
    cols: Var

    @staticmethod
    def none(fn: Function) -> _Best:
        return _Best(fn.var(I64, 1 << 62), fn.var(I64, 0), fn.var(I64, 0))

    def offer(self, fn: Function, cost: Value, rows: Value, cols: Value) -> None:
        with fn.when(cost <= self.cost):
            self.cost.set(cost)
            self.rows.set(rows)
            self.cols.set(cols)


def division(
    fn: Function, multiples: tuple[Operand, int], extents: tuple[Value, Value, Value], threads: Value,
    element: Operand = 0, kc: int | None = None,
) -> Division:  # fmt: skip
    """Emit the search for the cheapest grid of at most `threads` rectangles, and return it.

    Rows and columns of a rectangle are multiples of `multiples`; `extents` are m, n and k; `element` is the cost of
    packing an element of B (`packing_cost`). Of equally cheap grids it is the one with the most rectangles one below
    the other: those side by side share a cache line in every row of C. Shared packing, in k-blocks of `kc` steps, is
    considered only if `kc` is given.
    """
    (tile_rows, tile_cols), (m, n, k) = multiples, extents
    tiles_m, tiles_n = fn.ceil_div(m, tile_rows), fn.ceil_div(n, tile_cols)
    alone, together = _Best.none(fn), _Best.none(fn)
    with fn.range(1, fn.minimum(threads, tiles_m) + 1) as down:
        rows = fn.ceil_div(tiles_m, down) * tile_rows
        cols = fn.ceil_div(tiles_n, threads // down) * tile_cols
        alone.offer(fn, alone_cost(rows, cols, k, element), rows, cols)
        if kc:
            together.offer(fn, shared_cost(rows, cols, k, element, n, threads, kc), rows, cols)
    shared = together.cost < alone.cost
    rows, cols = fn.select(shared, together.rows, alone.rows), fn.select(shared, together.cols, alone.cols)
    return Division(rows, cols, fn.zero_extend(shared))


def worthwhile(fn: Function, threads: Value, work: Value) -> Value:
    """Emit the search for the most of `threads` threads that are not `too_many` for `work` multiply-adds.

    The number of threads is returned.
    """
    count = fn.var(I64, threads)
    with fn.loop() as enough:
        fn.leave_if(enough, too_many(count.read(), work).equals(0))
        count.set(count - 1)
    return count.read()


def packing_cost(fn: Function, b_row: Value, b_col: Value) -> Value:
    """Emit the cost of packing an element of B in addition to `COLUMN`, in multiply-adds, by B's strides; return it.

    It is 0 for contiguous rows, because multiply-adds hide their packing.
    """
    return fn.select(b_col.equals(1), 0, fn.select(b_row.equals(1), TRANSPOSED, SCATTERED))
