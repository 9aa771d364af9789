"""Small products, many in one call: the register tile on operands in place, with the loop over the products inside.

Packing, cache blocks and prefetches cost more than a small product itself. Here the rows of B are read where they are,
the last vector of each under a mask, and the elements of A are broadcast from wherever they lie:

    for each product                      addresses step on by the distances in the batch
      for each step of k                  acc[r][v] += a[r, k] * b[k, v]
      C[r, v] = alpha * acc[r][v] + beta * C[r, v]

B is packed only where its rows are not contiguous (or where the processor has no masked loads), once for all products
that share it. An element's sum has the same terms in the same order as in the blocked product, so the result is the
same to the bit.
"""

from __future__ import annotations

from gemmlab.codegen.blocking import Blocks
from gemmlab.codegen.microkernel import FLOATS, LINE, Tile
from gemmlab.codegen.packing import transpose
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I64, VOID, vector
from gemmlab.ir.values import Value, Var

STEPS = (("count", I64), ("a_next", I64), ("b_next", I64), ("c_next", I64))
"""Number of products, and the distance in elements from one product's operand to that of the next."""
_TILE = (
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
)
"""`last` is the number of columns in the last vector; `ahead` is the address that is prefetched."""
SMALL = (
    *STEPS,
    ("m", I64),
    ("n", I64),
    ("k", I64),
    ("alpha", F32),
    ("a", FLOATS),
    ("a_row", I64),
    ("a_col", I64),
    ("b", FLOATS),
    ("b_row", I64),
    ("b_col", I64),
    ("beta", F32),
    ("c", FLOATS),
    ("ldc", I64),
    ("workspace", FLOATS),
)
"""Strides are in elements, of any sign; C's rows are contiguous and `ldc` apart. alpha != 0, 0 < k <= `LONGEST`."""
LONGEST = 256
"""The longest k."""
_MOST_B = 1 << 14
"""The most elements of B: 64 KiB."""
_MOST_WORK = (1 << 18) - 1
"""The most multiply-adds: from 64 x 64 x 64 on, blocks and packing are faster."""
_GROUP = 3
_AHEAD = 32
"""Floats prefetched in a step of k: two lines beside the tile's fourteen loads."""


def is_small(m: Value, n: Value, k: Value, blocks: Blocks) -> Value:
    """Return whether this code is meant for these extents: k fits into one block of the blocked product, too, so that
    both add in the same order.
    """
    return (k <= min(LONGEST, blocks.kc)) & (n * k <= _MOST_B) & (m * n * k <= _MOST_WORK)


def small_workspace_floats(tile: Tile) -> int:
    """Number of floats for B, packed: each strip padded to whole vectors, and k to a whole square."""
    return 2 * _MOST_B + 2 * tile.cols * (LONGEST + tile.lanes)


def emit_small(module: Module, tile: Tile) -> Function:
    """Emit `small`: `count` products whose extents `is_small` accepts."""
    tiles = [
        _emit_tile(module, rows, vectors) for vectors in range(1, tile.vectors + 1) for rows in range(1, tile.rows + 1)
    ]
    table = module.table("small_tiles", tiles)
    pack = _emit_pack(module)
    lanes, mr, nr = tile.lanes, tile.rows, tile.cols
    signature = [type_ for _name, type_ in _TILE]
    with module.function("small", SMALL) as fn:
        count, a_next, b_next, c_next, m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, ldc, workspace = (
            fn.args
        )
        readable = b_col.equals(1) | n.equals(1)
        if lanes == 4:
            readable = readable & (n % lanes).equals(0)

        def multiply(
            many: Value, rows: Value, cols: Value, at: tuple[Value, Value, Value], b_step: Value, ahead: Value
        ) -> None:
            """Emit one tile of `many` products; `at` are the addresses in A, B and C."""
            vectors = fn.ceil_div(cols, lanes)
            target = fn.table_entry(table, (vectors - 1) * mr + (rows - 1))
            a_at, b_at, c_at = at
            fn.call_pointer(
                target, VOID, signature, many, a_next, fn.select(readable, b_next, 0), c_next, k, a_at, a_row, a_col,
                b_at, b_step, c_at, ldc, alpha, beta, cols - (vectors - 1) * lanes, ahead,
            )  # fmt: skip

        one_tile = (m <= mr) & (n <= nr)
        width = fn.ceil_div(n, lanes) * lanes
        same_b = b_next.equals(0)
        with fn.when(one_tile & readable):
            multiply(count, m, n, (a, b, c), b_row, a)
            fn.ret()
        with fn.when(one_tile & same_b):
            fn.call(pack, k, n, b, b_row, b_col, workspace)
            multiply(count, m, n, (a, workspace, c), width, a)
            fn.ret()
        one = fn.index(1)
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
                    left = m - i
                    # A thin last panel shares its rows with the one before.
                    shared = (left > mr) & (left < mr + mr * 2 // 3)
                    rows = fn.select(shared, (left + 1) // 2, fn.minimum(left, mr))
                    # A third of the tiles fetch the next A, a third B, a third the place for C.
                    number = tile_number.read()
                    which = number // third
                    matrix = fn.select(
                        which.equals(0), ahead[0], fn.select(which.equals(1), ahead[1], ahead[2], FLOATS), FLOATS
                    )
                    hint = matrix + (number - which * third) * k * _AHEAD
                    multiply(one, rows, cols, (here_a + a_row * i, source, here_c + ldc * i + j), step, hint)
                    tile_number.set(number + 1)
                    at.set(i + rows)
            a_at.set(here_a + a_next)
            b_at.set(here_b + b_next)
            c_at.set(here_c + c_next)
        fn.finish()
    return fn


def _emit_tile(module: Module, rows: int, vectors: int) -> Function:
    lanes = module.lanes
    with module.function(f"small_{rows}x{vectors}", _TILE, noalias=("c",)) as fn:
        count, a_next, b_next, c_next, k, a, a_row, a_col, b, b_row, c, ldc, alpha, beta, last, ahead = fn.args
        mask = fn.first_lanes(last, lanes)
        acc = [[fn.var(vector(F32, lanes)) for _ in range(vectors)] for _ in range(rows)]
        a_first, b_first, c_at = fn.var(FLOATS, a), fn.var(FLOATS, b), fn.var(FLOATS, c)
        a_at = [fn.var(FLOATS) for _ in range(0, rows, _GROUP)]
        b_at = fn.var(FLOATS)
        fresh = beta.equals(0.0)
        large, ahead_at = rows * vectors > 8, fn.var(FLOATS, ahead)
        with fn.range(count):
            for sums in acc:
                for one in sums:
                    one.set(0.0)
            for index, where in enumerate(a_at):
                where.set(a_first + a_row * (index * _GROUP))
            b_at.set(b_first.read())

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
                    for line in range(0, _AHEAD * unroll, LINE):
                        fn.prefetch(hint + line)
                    ahead_at.set(hint + _AHEAD * unroll)
                for _ in range(unroll):
                    step()
            if large:
                with fn.range(whole, k):
                    step()
            _write(fn, acc, c_at.read(), ldc, alpha, beta, fresh, mask)
            a_first.set(a_first + a_next)
            b_first.set(b_first + b_next)
            c_at.set(c_at + c_next)
        fn.finish()
    return fn


def _write(
    fn: Function, acc: list[list[Var]], c: Value, ldc: Value, alpha: Value, beta: Value, fresh: Value, mask: Value
) -> None:
    vectors, lanes = len(acc[0]), acc[0][0].type.lanes
    scale, keep = fn.splat(alpha, lanes), fn.splat(beta, lanes)
    places = [
        (c + ldc * row + v * lanes, mask if v == vectors - 1 else None, acc[row][v])
        for row in range(len(acc))
        for v in range(vectors)
    ]
    with fn.choose(fresh) as which:
        with which.yes(), fn.choose(alpha.equals(1.0)) as factor:
            with factor.yes():
                for where, some, total in places:
                    fn.store(where, total, some)
            with factor.no():
                for where, some, total in places:
                    fn.store(where, total * scale, some)
        with which.no():
            for where, some, total in places:
                fn.store(where, fn.fma(keep, fn.load(where, lanes, some), total * scale), some)


def _emit_pack(module: Module) -> Function:
    """Emit `small_pack(k, cols, b, row_stride, col_stride, out)`: one strip of B, its rows padded to whole vectors.

    Up to `lanes` rows after the last one are written, too, and columns after the last one are undefined.
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
    """Transpose a strip whose columns are contiguous, in registers."""
    zeros = fn.constant(0.0, vector(F32, side))
    with fn.range(0, width, lanes) as first:
        # Columns behind the last one repeat it.
        starts = [b + col_stride * fn.minimum(first + c, cols - 1) for c in range(side)]
        with fn.range(0, k, side) as p:
            mask = fn.first_lanes(k - p, side)
            square = [fn.load(start + p, side, mask) for start in starts]
            for step, row in enumerate(transpose(fn, square)):
                # Whole vectors, as they are read later: store forwarding fails if the store is shorter than the load.
                whole = row if side == lanes else fn.shuffle(row, zeros, [min(lane, side) for lane in range(lanes)])
                fn.store(out + width * (p + step) + first, whole)
