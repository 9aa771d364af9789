"""The division of C among threads, computed in Python as the compiled product (`codegen/product.py`) computes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from gemmlab.codegen.blocking import Blocks
from gemmlab.codegen.microkernel import Tile
from gemmlab.codegen.shared_strips import HALF
from gemmlab.codegen.thread_grid import SCATTERED, TRANSPOSED, alone_cost, row_multiple, shared_cost, too_many

VECTOR_SERIAL = 1 << 18
"""Elements of the matrix below which a product with a vector stays on one thread."""
VECTOR_SHARE = 16
"""Every thread's share of a product with a vector, but the last, is a multiple of so many elements of the result."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Extents and strides, in elements, of a product. They determine its division."""

    m: int
    n: int
    k: int
    a_row: int
    a_col: int
    b_row: int
    b_col: int


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Part of C: `rows` from `row` on, `cols` from `col` on."""

    row: int
    rows: int
    col: int
    cols: int


@dataclass(frozen=True, slots=True)
class ThreadDivision:
    """The jobs of one product. Any thread that is free takes the next job."""

    threads: int
    """The most threads that take part."""
    rows: int
    cols: int
    """Extents (rows, cols) of a job's rectangle, before it is cut at the edges of C."""
    rectangles: tuple[Rectangle, ...]
    """The jobs in the order in which they are taken."""
    shared_block: tuple[int, int] | None = None
    """Rows (steps of k) and columns of the blocks of B that all threads pack together; `None` if each thread packs for
    itself. A rectangle then lies within the columns of one block, and is a job for each k-block.
    """

    @property
    def across(self) -> int:
        """Number of rectangles side by side."""
        return len({one.col for one in self.rectangles})

    @property
    def down(self) -> int:
        """Number of rectangles one below the other."""
        return len({one.row for one in self.rectangles})


def divide(problem: Problem, threads: int, tile: Tile, blocks: Blocks, serial_work: int) -> ThreadDivision:
    """Return the jobs of a product on up to `threads` threads.

    Products of fewer than `serial_work` multiply-adds have one job; with a vector, `VECTOR_SERIAL` is the limit.
    """
    m, n, k = problem.m, problem.n, problem.k
    if min(m, n, k) < 1 or (share := _of_vector(problem, threads)) == (m, n):
        return _cut(m, n, 1, m, n)
    if share is not None:
        return _cut(m, n, threads, *share)
    used = 1 if m * n * k < serial_work else useful(threads, m * n * k)
    if used < 2:
        return _cut(m, n, 1, m, n)
    element = 0 if problem.b_col == 1 else TRANSPOSED if problem.b_row == 1 else SCATTERED
    multiples = row_multiple(tile.rows, used), tile.cols
    rows, cols, together = cheapest((m, n, k), used, multiples, element, blocks.kc)
    return _cut(m, n, used, rows, cols, _shared_block(n, k, tile, blocks) if together else None)


def cheapest(
    extents: tuple[int, int, int], threads: int, tile: tuple[int, int], element: int, kc: int | None
) -> tuple[int, int, bool]:
    """Return rows and columns of a rectangle of the cheapest grid, and whether packing is shared.

    The result equals that of `thread_grid.division`, which documents the arguments.
    """
    (m, n, k), (tile_rows, tile_cols) = extents, tile
    tiles_m, tiles_n = -(-m // tile_rows), -(-n // tile_cols)
    found: list[tuple[int, bool, int, int, int]] = []
    for down in range(1, min(threads, tiles_m) + 1):
        rows, cols = -(-tiles_m // down) * tile_rows, -(-tiles_n // (threads // down)) * tile_cols
        found.append((alone_cost(rows, cols, k, element), False, -down, rows, cols))
        if kc:
            found.append((shared_cost(rows, cols, k, element, n, threads, kc), True, -down, rows, cols))
    _cost, together, _down, rows, cols = min(found)
    return rows, cols, together


def useful(threads: int, work: int) -> int:
    """Return the most of `threads` threads that are not `too_many` for a product of `work` multiply-adds.

    It is the number that the code of `thread_grid.worthwhile` computes.
    """
    return next(count for count in range(threads, 0, -1) if not too_many(count, work))


def _of_vector(problem: Problem, threads: int) -> tuple[int, int] | None:
    """Return rows and columns of a thread's share of a product with a vector; `None` for a product without one, or with
    strides for which it is computed like other products.
    """
    m, n, k = problem.m, problem.n, problem.k
    if n == 1 and ((problem.a_col == 1 and problem.b_row == 1) or problem.a_row == 1):
        return _share(m, k, threads), 1
    if m == 1 and ((problem.b_row == 1 and problem.a_col == 1) or problem.b_col == 1):
        return 1, _share(n, k, threads)
    return None


def _share(length: int, k: int, threads: int) -> int:
    helpers = 1 if length * k < VECTOR_SERIAL else threads
    return min(length, _up(_up(length, helpers) // helpers, VECTOR_SHARE))


def _up(number: int, unit: int) -> int:
    """Return the least multiple of `unit` that is no less than `number`."""
    return -(-number // unit) * unit


def _shared_block(n: int, k: int, tile: Tile, blocks: Blocks) -> tuple[int, int]:
    """Return rows and columns of a shared block of B, as `shared_strips` cuts it."""
    count = max((k + blocks.kc * 2 // 3) // blocks.kc, 1)
    kc = _up(_up(k, count) // count, 4)
    most = HALF // kc // tile.cols * tile.cols
    over = _up(n, most) // most
    nc = _up(_up(n, over) // over, tile.cols)
    return kc, nc


def _cut(
    m: int, n: int, threads: int, rows: int, cols: int, shared: tuple[int, int] | None = None
) -> ThreadDivision:  # fmt: skip
    return ThreadDivision(threads, rows, cols, tuple(_rectangles(m, n, rows, cols, shared)), shared)


def _rectangles(m: int, n: int, rows: int, cols: int, shared: tuple[int, int] | None) -> Iterator[Rectangle]:
    if min(m, n) < 1:
        return
    wide = n if shared is None else shared[1]
    for first in range(0, n, wide):
        end = min(first + wide, n)
        for row, col in product(range(0, m, rows), range(first, end, cols)):
            yield Rectangle(row, min(rows, m - row), col, min(cols, end - col))
