"""Small products, many in one call: the register tile on operands in place, with the loop over the products inside.

Packing, cache blocks and prefetches cost more than a small product itself. Here the rows of B are read in place, the
last vector of each under a mask, and the elements of A are broadcast from their places:

    for each product                      its operands lie at even distances from those of the one before
      for each step of k                  acc[r][v] += a[r, k] * b[k, v]
      C[r, v] = alpha * acc[r][v] + beta * C[r, v]

B is packed only where its rows are not contiguous (or where the processor has no masked loads), once for all products
that share it. An element's sum has the same terms in the same order as in the blocked product, so the result is the
same to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemmlab.codegen.blocking import Blocks
from gemmlab.codegen.macrokernel import JOB
from gemmlab.codegen.microkernel import FLOATS, Tile
from gemmlab.codegen.packing import transpose
from gemmlab.codegen.small_tiles import AHEAD, STEPS, TILE, emit_tile, tile_shapes
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I64, VOID, vector
from gemmlab.ir.values import Operand, Value

SMALL = (*STEPS, *JOB)
"""Arguments of `count` products: those of the first as in `macrokernel.JOB`, where 0 < k <= `LONGEST`, and the
distances in floats from each product's a, b and c to those of the next.
"""
LONGEST = 256
"""The largest k of a small product."""
_MOST_B = 1 << 14
"""The most elements of B of a small product: 64 KiB."""
_MOST_WORK = (1 << 20) - 1
"""The most multiply-adds of a small product.

Beyond about 100 x 100 x 100, packing is as fast, and threads can share it.
"""
_STRIP = 64
"""Columns of the widest strip, four vectors of AVX-512."""
_MOST_ALIGNED_WORK = 1 << 22
_LINE_BYTES = 64


def is_small(m: Value, n: Value, k: Value, blocks: Blocks) -> Value:
    """Emit a test, and return its result: whether `small` may compute products of these extents.

    It requires that k fits into one k-block, so that the blocked product adds in the same order.
    """
    return (k <= min(LONGEST, blocks.kc)) & (n * k <= _MOST_B) & (m * n * k <= _MOST_WORK)


def is_small_aligned(fn: Function, job: Sequence[Value], blocks: Blocks) -> Value:
    """Emit a test, and return its result: whether `small` is faster than packing for a product, with 16 lanes.

    It may hold for products that `is_small` does not accept. It requires that all strips are whole, and that no vector
    of B crosses a cache line. `job` begins with the arguments `macrokernel.JOB`.
    """
    m, n, k, _alpha, _a, _a_row, _a_col, b, b_row, b_col, *_rest = job
    aligned = ((fn.address(b) | (b_row * 4)) & (_LINE_BYTES - 1)).equals(0) & b_col.equals(1)
    few = (n * k <= _MOST_B) & (m * n * k <= _MOST_ALIGNED_WORK)
    return (k <= min(LONGEST, blocks.kc)) & (n % _STRIP).equals(0) & few & aligned


def small_workspace_floats(tile: Tile) -> int:
    """Return the most floats that a packed B takes: each strip is padded to whole vectors, and k to a multiple of a
    vector's lanes.
    """
    return 2 * _MOST_B + 2 * max(tile_shapes(tile)) * tile.lanes * (LONGEST + tile.lanes)


def emit_small(module: Module, tile: Tile) -> Function:
    """Emit `small(*SMALL)`: `count` products that `is_small` or `is_small_aligned` accepts."""
    shapes = tile_shapes(tile)
    tiles = [emit_tile(module, rows, vectors) for vectors, most in shapes.items() for rows in range(1, most + 1)]
    table = module.table("small_tiles", tiles)
    pack = _emit_pack(module)
    lanes, widest = tile.lanes, max(shapes)
    signature = [type_ for _name, type_ in TILE]
    with module.function("small", SMALL) as fn:
        count, a_next, b_next, c_next, m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, ldc, workspace = (
            fn.args
        )
        readable = b_col.equals(1) | n.equals(1)
        if lanes == 4:
            readable = readable & (n % lanes).equals(0)

        def of_shape(vectors: Value, numbers: Mapping[int, int]) -> Value:
            """Emit the choice of one of `numbers` (strip width in vectors -> number) for `vectors`; return it."""
            found: Value = fn.index(numbers[widest])
            for width in sorted(shapes, reverse=True)[1:]:
                found = fn.select(vectors <= width, numbers[width], found)
            return found

        firsts = {vectors: sum(most for other, most in shapes.items() if other < vectors) for vectors in shapes}

        def multiply(
            many: Value, steps: tuple[Operand, Operand, Operand], rows: Value, cols: Value,
            at: tuple[Value, Value, Value], b_step: Value, ahead: tuple[Value, Operand],
        ) -> None:  # fmt: skip
            """Emit a call that computes `many` tiles of C, of `rows` x `cols` elements each.

            `at` has the addresses of the first tile's A, B and C, `steps` their distances to the next tile's, and
            `ahead` the address that the first tile prefetches and the distance to the next tile's.
            """
            vectors = fn.ceil_div(cols, lanes)
            target = fn.table_entry(table, of_shape(vectors, firsts) + (rows - 1))
            a_at, b_at, c_at = at
            fn.call_pointer(
                target, VOID, signature, many, *steps, k, a_at, a_row, a_col, b_at, b_step, c_at, ldc, alpha, beta,
                cols - (vectors - 1) * lanes, *ahead,
            )  # fmt: skip

        all_vectors = fn.ceil_div(n, lanes)
        # Strips of nearly equal width: one of a single vector would load nearly as much as it computes.
        strips = fn.ceil_div(all_vectors, widest)
        strip = fn.ceil_div(all_vectors, strips)
        nr, mr = strip * lanes, of_shape(strip, shapes)
        one_tile = (m <= mr) & (n <= nr)
        width = fn.ceil_div(n, lanes) * lanes
        same_b = b_next.equals(0)
        with fn.when(one_tile & readable):
            multiply(count, (a_next, b_next, c_next), m, n, (a, b, c), b_row, (b + b_next, b_next))
            fn.ret()
        with fn.when(one_tile & same_b):
            fn.call(pack, k, n, b, b_row, b_col, workspace)
            multiply(count, (a_next, 0, c_next), m, n, (a, workspace, c), width, (workspace, 0))
            fn.ret()
        # The rows of a thin last panel are shared with the one before.
        rest = m % mr
        thin = (m > mr) & (rest > 0) & (rest < mr * 2 // 3)
        whole = m // mr - fn.zero_extend(thin)
        end = whole * mr
        last_rows = fn.select(thin, fn.ceil_div(m - end, 2), m - end)
        tile_number = fn.var(I64, 0)
        third = fn.ceil_div(fn.ceil_div(m, mr) * fn.ceil_div(n, nr), 3)
        a_at, b_at, c_at = (fn.var(FLOATS, start) for start in (a, b, c))
        with fn.range(count) as product:
            here_a, here_b, here_c = a_at.read(), b_at.read(), c_at.read()
            more = product + 1 < count
            ahead = [
                fn.select(more, here + step, here, FLOATS)
                for here, step in ((here_a, a_next), (here_b, b_next), (here_c, c_next))
            ]
            tile_number.set(0)
            fresh = readable.equals(0) & (product.equals(0) | same_b.equals(0))
            with fn.range(0, n, nr) as j:
                cols = fn.minimum(n - j, nr)
                packed = workspace + j * k
                with fn.when(fresh):
                    fn.call(pack, k, cols, here_b + b_col * j, b_row, b_col, packed)
                source = fn.select(readable, here_b + j, packed, FLOATS)
                step = fn.select(readable, b_row, fn.ceil_div(cols, lanes) * lanes)
                at = fn.var(I64, 0)
                with fn.loop() as done:
                    i = at.read()
                    fn.leave_if(done, i >= m)
                    # A third of the tiles prefetch the next A, a third B, a third the place for C.
                    number = tile_number.read()
                    which = number // third
                    matrix = fn.select(
                        which.equals(0), ahead[0], fn.select(which.equals(1), ahead[1], ahead[2], FLOATS), FLOATS
                    )
                    of_third = number - which * third
                    many, rows = fn.var(I64, 1), fn.var(I64, fn.minimum(last_rows, m - i))
                    with fn.when(i < end):
                        many.set(fn.minimum((end - i) // mr, third - of_third))
                        rows.set(mr)
                    multiply(
                        many.read(), (a_row * rows, 0, ldc * rows), rows.read(), cols,
                        (here_a + a_row * i, source, here_c + ldc * i + j), step,
                        (matrix + of_third * k * AHEAD, k * AHEAD),
                    )  # fmt: skip
                    tile_number += many.read()
                    at.set(i + many * rows)
            a_at.set(here_a + a_next)
            b_at.set(here_b + b_next)
            c_at.set(here_c + c_next)
        fn.finish()
    return fn


def _emit_pack(module: Module) -> Function:
    """Emit `small_pack(k, cols, b, row_stride, col_stride, out)`: copy one strip of B.

    Its rows are padded to whole vectors; the padding is undefined. Fewer than `lanes` further rows may be overwritten
    after the last one.
    """
    lanes = module.lanes
    params = [("k", I64), ("cols", I64), ("b", FLOATS), ("row_stride", I64), ("col_stride", I64), ("out", FLOATS)]
    with module.function("small_pack", params, noalias=("b", "out")) as fn:
        k, cols, b, row_stride, col_stride, out = fn.args
        width = fn.ceil_div(cols, lanes) * lanes
        if lanes > 4:
            with fn.when(col_stride.equals(1)):
                mask = fn.first_lanes(cols - (width - lanes), lanes)
                with fn.range(k) as p:
                    source, target = b + row_stride * p, out + width * p
                    with fn.range(0, width - lanes, lanes) as col:
                        fn.store(target + col, fn.load(source + col, lanes))
                    fn.store(target + (width - lanes), fn.load(source + (width - lanes), lanes, mask))
                fn.ret()
            for side in (4, 8, 16):
                # A strip of a single square takes the smallest square that suffices.
                if side < lanes:
                    fits = row_stride.equals(1) & (k <= side) & (cols <= side)
                elif side == lanes:
                    fits = row_stride.equals(1)
                else:
                    continue
                with fn.when(fits):
                    _squares(fn, side, lanes, k, cols, width, b, col_stride, out)
                    fn.ret()
        with fn.range(k) as p, fn.range(cols) as col:
            fn.store(out + p * width + col, fn.load(b + row_stride * p + col_stride * col))
        fn.finish()
    return fn


def _squares(
    fn: Function, side: int, lanes: int, k: Value, cols: Value, width: Value, b: Value, col_stride: Value, out: Value
) -> None:
    """Emit the copy of a strip whose columns are contiguous: squares of `side` x `side` are transposed in registers."""
    zeros = fn.constant(0.0, vector(F32, side))
    with fn.range(0, width, lanes) as first:
        # Columns after the last one repeat it.
        starts = [b + col_stride * fn.minimum(first + c, cols - 1) for c in range(side)]
        with fn.range(0, k, side) as p:
            mask = fn.first_lanes(k - p, side)
            square = [fn.load(start + p, side, mask) for start in starts]
            for step, row in enumerate(transpose(fn, square)):
                # Whole vectors, as they are read later: store forwarding fails if the store is shorter than the load.
                whole = row if side == lanes else fn.shuffle(row, zeros, [min(lane, side) for lane in range(lanes)])
                fn.store(out + width * (p + step) + first, whole)
