"""A block of 32 x 32 results: four accumulators, two tiles of A and two of B.

            B tile 0   B tile 1           tile registers 0 .. 3: C      4, 5: A      6, 7: B
    A tile 0   C00        C01
    A tile 1   C10        C11

A multiplication takes 16 cycles, and its result is there after 52. Each C is used by every fourth one, so none waits.

All of k is processed twice: first the products of parts of which at least one is not a high part, then high by high. So
small products are added to each other before a large one joins them, and a large sum is rounded once for 32 steps of k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gemmlab.codegen.amx import tile_registers
from gemmlab.codegen.amx.ahead import AHEAD, emit_split_ahead
from gemmlab.codegen.amx.split import BYTES, LINES, step_bytes
from gemmlab.codegen.microkernel import FLOATS
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I64, vector
from gemmlab.ir.values import Value

Pair = tuple[int, int]
"""The numbers of a part of A and a part of B: 0 high, 1 mid, 2 low."""
SMALL_PRODUCTS: dict[int, tuple[Pair, ...]] = {
    3: ((1, 0), (0, 1)),
    6: ((2, 0), (1, 0), (1, 1), (0, 1), (0, 2)),
    9: ((2, 2), (1, 2), (0, 2), (0, 1), (1, 1), (2, 1), (2, 0), (1, 0)),
}
"""The small products of parts (all but high by high), in the order in which they are added, by the number of all
products of parts. From each product to the next, one factor stays the same, and stays in its registers.
"""
_HIGH: Pair = (0, 0)
_C, _A, _B = (0, 1, 2, 3), (4, 5), (6, 7)

BLOCK = (
    ("steps", I64), ("a", BYTES), ("b", BYTES), ("c", FLOATS), ("ldc", I64), ("alpha", F32), ("keep", F32),
    ("rows", I64), ("cols", I64), ("state", AHEAD),
)  # fmt: skip


def part_count(products: int) -> int:
    """Return the number of parts of each operand if there are `products` (3, 6 or 9) products of parts."""
    return 2 if products == 3 else 3


def emit_block(module: Module, products: int) -> Function:
    """Emit `block(*BLOCK)`: `C = alpha * A B + keep * C` for `rows` x `cols` of C, at most 32 x 32.

    `a` and `b` are a packed panel and strip, `steps` times 32 steps of k. C is not read if `keep` is 0. The thread must
    have tile state. After every four multiplications, `split_ahead(state)` is called.
    """
    ahead = emit_split_ahead(module, part_count(products))
    each = step_bytes(part_count(products))
    with module.function("block", BLOCK, noalias=("c",)) as fn:
        steps, a, b, c, ldc, alpha, keep, rows, cols, state = fn.args
        for register in _C:
            tile_registers.zero(fn, register)
        for products_of_pass in (SMALL_PRODUCTS[products], (_HIGH,)):
            with fn.range(steps) as step:
                _add(fn, a + step * each, b + step * each, products_of_pass, lambda: fn.call(ahead, state))
        whole = rows.equals(LINES) & cols.equals(LINES)
        with fn.when(whole & alpha.equals(1.0) & keep.equals(0.0)):
            _store(fn, c, ldc * 4)
            fn.ret()
        sums = fn.scratch(F32, LINES * LINES)
        _store(fn, sums, fn.index(LINES * 4))
        with fn.choose(whole) as full:
            with full.yes():
                _join(fn, sums, c, ldc, alpha, keep, rows, [None, None])
            with full.no():
                masks = [fn.first_lanes(cols - first, tile_registers.ROWS) for first in (0, tile_registers.ROWS)]
                _join(fn, sums, c, ldc, alpha, keep, rows, masks)
        fn.finish()
    return fn


def _add(fn: Function, a: Value, b: Value, products: Sequence[Pair], beside: Callable[[], object]) -> None:
    """Emit the addition of products of parts to all four accumulators, for 32 steps of k.

    `beside` emits what is done after each product of two parts, which takes four multiplications.
    """
    at: tuple[int | None, int | None] = (None, None)
    for left, right in products:
        if left != at[0] and right != at[1]:
            _load(fn, _B, b, right)
        if left != at[0]:
            for down, register in enumerate(_A):
                tile_registers.load(fn, register, _tile(a, left, down))
                for over in (0, 1):
                    tile_registers.multiply(fn, _C[2 * down + over], register, _B[over])
        else:
            for over, register in enumerate(_B):
                tile_registers.load(fn, register, _tile(b, right, over))
                for down in (0, 1):
                    tile_registers.multiply(fn, _C[2 * down + over], _A[down], register)
        at = left, right
        beside()


def _load(fn: Function, registers: Sequence[int], block: Value, part: int) -> None:
    for half, register in enumerate(registers):
        tile_registers.load(fn, register, _tile(block, part, half))


def _tile(block: Value, part: int, half: int) -> Value:
    return block + (2 * part + half) * tile_registers.TILE_BYTES


def _store(fn: Function, to: Value, row_bytes: Value) -> None:
    for down in (0, 1):
        for over in (0, 1):
            at = to + row_bytes // 4 * (down * tile_registers.ROWS) + over * tile_registers.ROWS
            tile_registers.store(fn, _C[2 * down + over], at, row_bytes)


def _join(
    fn: Function, sums: Value, c: Value, ldc: Value, alpha: Value, keep: Value, rows: Value,
    masks: Sequence[Value | None],
) -> None:  # fmt: skip
    """Emit `C = alpha * sums + keep * C` for `rows` rows; C is not read if `keep` is 0.

    `masks` has, for columns 0 to 15 and 16 to 31, a mask or None for all of them.
    """
    wide = vector(F32, tile_registers.ROWS)
    with fn.choose(keep.equals(0.0)) as fresh:
        for arm, reads in ((fresh.yes, False), (fresh.no, True)):
            with arm(), fn.range(rows) as row:
                for half, mask in enumerate(masks):
                    at = c + ldc * row + half * tile_registers.ROWS
                    total = fn.load(sums + row * LINES + half * tile_registers.ROWS, tile_registers.ROWS)
                    if reads:
                        before = fn.load(at, tile_registers.ROWS, mask) * keep
                        result = fn.fma(fn.constant(alpha, wide), total, before)
                    else:
                        result = total * alpha
                    fn.store(at, result, mask)
