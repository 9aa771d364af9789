"""The register tiles of small products, with the loop over the products inside.

Rows of B are read in place, the last vector of each under a mask, and elements of A are broadcast from their places.
`small` chooses the tile and gives it the addresses.
"""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.codegen.microkernel import FLOATS, LINE, Tile
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I64, vector
from gemmlab.ir.values import Value, Var

STEPS = (("count", I64), ("a_next", I64), ("b_next", I64), ("c_next", I64))
"""Number of products, and the distances in elements from a product's A, B and C to those of the next."""
TILE = (
    *STEPS,
    ("k", I64),
    ("a", FLOATS),
    ("a_row", I64),
    ("a_col", I64),
    ("b", FLOATS),
    ("b_row", I64),
    ("c", FLOATS),
    ("ldc", I64),
    ("alpha", F32),
    ("beta", F32),
    ("last", I64),
    ("ahead", FLOATS),
    ("ahead_next", I64),
)
"""Arguments of a tile, which computes `count` products, or as many panels of one product, one below the other.

Each has the tile's rows and vectors; `last` is the number of columns in the last vector. A tile of more than 8 vectors
of results prefetches. From `ahead` on, its first product prefetches `AHEAD` floats for each step of k, but none for the
last k % 4 steps; each further product does so from an address `ahead_next` floats after the one before.
"""
_GROUP = 3
AHEAD = 16
"""Floats prefetched in a step of k: one line beside the tile's ten to fourteen loads."""


def tile_shapes(tile: Tile) -> dict[int, int]:
    """Return a mapping from a small product's vectors per row to the most rows of its tile.

    If the blocked product's tile is 12 x 2 vectors, wider tiles of 9 x 3 and 6 x 4 are added. They have 27 and 24
    accumulators (12 x 2 has 24) and broadcast fewer elements of A for the same number of multiply-adds.
    """
    shapes = dict.fromkeys(range(1, tile.vectors + 1), tile.rows)
    return shapes | {3: 9, 4: 6} if (tile.rows, tile.vectors) == (12, 2) else shapes


def emit_tile(module: Module, rows: int, vectors: int) -> Function:
    lanes = module.lanes
    with module.function(f"small_{rows}x{vectors}", TILE, noalias=("c",)) as fn:
        count, a_next, b_next, c_next, k, a, a_row, a_col, b, b_row, c, ldc, alpha, beta, last, ahead, ahead_next = (
            fn.args
        )
        mask = fn.first_lanes(last, lanes)
        acc = [[fn.var(vector(F32, lanes)) for _ in range(vectors)] for _ in range(rows)]
        a_first, b_first, c_at = fn.var(FLOATS, a), fn.var(FLOATS, b), fn.var(FLOATS, c)
        a_at = [fn.var(FLOATS) for _ in range(0, rows, _GROUP)]
        b_at = fn.var(FLOATS)
        fresh = beta.equals(0.0)
        large, ahead_first, ahead_at = rows * vectors > 8, fn.var(FLOATS, ahead), fn.var(FLOATS)
        with fn.range(count):
            for sums in acc:
                for one in sums:
                    one.set(0.0)
            for index, where in enumerate(a_at):
                where.set(a_first + a_row * (index * _GROUP))
            b_at.set(b_first.read())
            ahead_at.set(ahead_first.read())

            def step() -> None:
                row_of_b = b_at.read()
                some = None if lanes == 4 else mask
                b_row_at = [
                    fn.load(row_of_b + v * lanes, lanes, some if v == vectors - 1 else None) for v in range(vectors)
                ]
                # Otherwise LLVM would step from row to row by a chain of dependent additions.
                bases = [fn.opaque(where.read()) for where in a_at]
                for row in range(rows):
                    element = fn.splat(fn.load(bases[row // _GROUP] + a_row * (row % _GROUP)), lanes)
                    for v in range(vectors):
                        acc[row][v].set(fn.fma(element, b_row_at[v], acc[row][v].read()))
                    if large:
                        fn.pin(acc[row])
                for where, base in zip(a_at, bases, strict=True):
                    where.set(base + a_col)
                b_at.set(row_of_b + b_row)

            unroll = 4 if large else 1
            whole = k - k % unroll
            with fn.range(0, whole, unroll):
                if large:
                    hint = ahead_at.read()
                    for line in range(0, AHEAD * unroll, LINE):
                        fn.prefetch(hint + line)
                    ahead_at.set(hint + AHEAD * unroll)
                for _ in range(unroll):
                    step()
            if large:
                with fn.range(whole, k):
                    step()
            _write(fn, acc, c_at.read(), ldc, alpha, beta, fresh, mask)
            a_first.set(a_first + a_next)
            b_first.set(b_first + b_next)
            c_at.set(c_at + c_next)
            ahead_first.set(ahead_first + ahead_next)
        fn.finish()
    return fn


def _write(
    fn: Function, acc: list[list[Var]], c: Value, ldc: Value, alpha: Value, beta: Value, fresh: Value, mask: Value
) -> None:
    vectors, lanes = len(acc[0]), acc[0][0].type.lanes
    scale, keep = fn.splat(alpha, lanes), fn.splat(beta, lanes)

    def each(result: Callable[[Value, Value, Value | None], Value]) -> None:
        at = c
        for row, sums in enumerate(acc):
            for v, total in enumerate(sums):
                some = mask if v == vectors - 1 else None
                fn.store(at + v * lanes, result(total.read(), at + v * lanes, some), some)
            if row + 1 < len(acc):
                # Otherwise LLVM would compute all addresses before it knows which of the three it needs.
                at = fn.opaque(at + ldc)

    with fn.choose(fresh) as which:
        with which.yes(), fn.choose(alpha.equals(1.0)) as factor:
            with factor.yes():
                each(lambda total, _where, _some: total)
            with factor.no():
                each(lambda total, _where, _some: total * scale)
        with which.no():
            each(lambda total, where, some: fn.fma(keep, fn.load(where, lanes, some), total * scale))
