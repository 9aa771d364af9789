"""The register tile: `rows` x (`vectors` x lanes) results that stay in registers while k runs.

Every step of k multiplies one element of each row of A, broadcast, with one row of B, `vectors` wide:

                 b[k, 0..L)   b[k, L..2L)        registers on 16 lanes, 12 x 32:
        a[0, k]   acc[0][0]    acc[0][1]           24 accumulators
        a[1, k]   acc[1][0]    acc[1][1]            2 for the row of B
           :          :            :                1 or 2 for the broadcast element
        a[11, k]  acc[11][0]   acc[11][1]

On 16 registers a tile has 6 x 16 floats with AVX2: 12 accumulators, 2 loads and 6 broadcasts a step, 15 registers. The
16 x 6 kernel of the article that the rung `microkernel` names is the same tile for column-major matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gemmlab.codegen.tile_results import emit_epilogue
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.target import Target
from gemmlab.ir.types import F32, I64, pointer, vector
from gemmlab.ir.values import Value

FLOATS = pointer(F32)
LINE = 16
"""Floats in a cache line."""
_GROUP = 3
"""Rows reached from one base pointer: x86 addresses base, base + stride and base + 2 * stride."""
_C_LEAD = 8
"""Rounds of the loop from the prefetch of C's last row to the end. An earlier prefetch would be lost: the operands
would evict C from L1 again.
"""
COPY_LEAD = 16
"""Rounds from the prefetch of a row of B into L2 to its copy: some 1000 cycles, as long as a read of memory takes. The
prefetch is not into L1: rows of B at a multiple of 4 KiB share so few sets there that they would evict each other.
"""
_LOOSEN_LEAD = 8 * LINE
"""Steps of k from the prefetch of A's rows into L2 to their copy: some 3000 cycles, longer than a memory read takes."""

SIGNATURE = (
    ("k", I64),
    ("a", FLOATS),
    ("a_stride", I64),
    ("b", FLOATS),
    ("b_stride", I64),
    ("c", FLOATS),
    ("ldc", I64),
    ("alpha", F32),
    ("beta", F32),
    ("cols", I64),
    ("ahead", FLOATS),
    ("ahead_step", I64),
    ("ahead_rows", I64),
    ("ahead_rate", I64),
)
"""Arguments of every tile. Strides are in floats. Of the tile's columns, the first `cols` are written to C.

Meanwhile the tile prefetches or packs a slice of the strip of B that comes next: `ahead_rows` rows, the first at
`ahead`, `ahead_step` apart. Each round of the loop handles `ahead_rate` of them.
"""

COPYING = (("packed", FLOATS), ("beyond", I64))
"""Further arguments of copying tiles, which pack the rows at `ahead` to `packed`; `ahead_rows` is a multiple of
`ahead_rate`. With each row, the row that is packed `COPY_LEAD` rounds later is prefetched. In the last `COPY_LEAD`
rounds there is none, and the data `beyond` floats after the row are prefetched instead.
"""

LOOSENING = (("source", FLOATS), ("source_row", I64))
"""Further arguments of loosening tiles, which copy the rows of A from `source`, `source_row` floats apart, to `a`."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A full register tile: MR rows by NV vectors (NR = NV * lanes columns)."""

    rows: int
    vectors: int
    lanes: int

    @property
    def cols(self) -> int:
        return self.vectors * self.lanes

    @property
    def unroll(self) -> int:
        """Steps of k in one round of the loop: enough multiply-adds to hide the round's prefetches."""
        return 4 if self.rows * self.vectors > 12 else 8


def best_tile(target: Target) -> Tile:
    """Return the tile that fills the vector registers: of 32 registers 24 are accumulators, of 16 registers 12."""
    if target.registers == 16:
        return Tile(6, 2, target.lanes)
    if target.lanes == 4:
        return Tile(8, 3, 4)
    return Tile(12, 2, target.lanes)


def emit_microkernel(
    module: Module,
    rows: int,
    vectors: int,
    *,
    panel: bool,
    unroll: int = 4,
    copying: bool = False,
    loosening: bool = False,
) -> Function:
    """Emit a function for one register tile, `C[rows, cols] = alpha * A B + beta * C`; C is not read if beta is 0.

    With `panel`, A is k-major: element (r, k) is at `a[k * a_stride + r]`; otherwise it is row-major, at
    `a[r * a_stride + k]`. Row k of B starts at `b[k * b_stride]`. k may be 0. The rows at `ahead` are prefetched into
    L2 or, with `copying`, packed one after the other: a few loads and stores among many multiply-adds, where a separate
    packing pass would wait for memory. With `loosening`, which needs a row-major A and k >= LINE, the tile also copies
    A's rows to `a`, one cache line of each row before it multiplies that line.
    """
    lanes = module.lanes
    width = vectors * lanes
    kind = f"{'panel' if panel else 'rows'}{'_copying' if copying else ''}{'_loosening' if loosening else ''}"
    signature = (*SIGNATURE, *(COPYING if copying else ()), *(LOOSENING if loosening else ()))
    with module.function(f"micro_{rows}x{vectors}_{kind}", signature, noalias=("c", "packed", "source")) as fn:
        k, a, a_stride, b, b_stride, c, ldc, alpha, beta, cols, ahead, ahead_step, ahead_rows, rate, *rest = fn.args
        acc = [[fn.var(vector(F32, lanes), 0.0) for _ in range(vectors)] for _ in range(rows)]
        starts = [a] if panel else [a + a_stride * row for row in range(0, rows, _GROUP)]
        a_at = [fn.var(FLOATS, start) for start in starts]
        b_at = fn.var(FLOATS, b)
        main = k - k % unroll
        c_at, c_last = fn.var(FLOATS, c), fn.opaque(c + ldc * (rows - 1))
        c_start = main - (rows + _C_LEAD) * unroll
        ahead_at, ahead_left = fn.var(FLOATS, ahead), fn.var(I64, ahead_rows)

        def element(bases: list[Value], row: int, step: int) -> Value:
            if panel:
                return fn.load(bases[0] + a_stride * step + row)
            base = bases[row // _GROUP] + step
            inside = row % _GROUP
            return fn.load(base if inside == 0 else base + a_stride * inside)

        def steps(count: int) -> None:
            bases = [fn.opaque(at.read()) for at in a_at]
            row_of_b = fn.opaque(b_at.read())
            for step in range(count):
                here = row_of_b + b_stride * step
                b_row = [fn.load(here + v * lanes, lanes) for v in range(vectors)]
                for row in range(rows):
                    broadcast = fn.splat(element(bases, row, step), lanes)
                    for v in range(vectors):
                        acc[row][v].set(fn.fma(broadcast, b_row[v], acc[row][v].read()))
                    fn.pin(acc[row])
            for at, base in zip(a_at, bases, strict=True):
                at.set(base + (a_stride * count if panel else count))
            b_at.set(row_of_b + b_stride * count)

        # A row that does not begin at a line's start reaches into one more line.
        in_row = (*range(0, width, LINE), width - 1)

        def fetch_c(at: Value) -> None:
            row = c_at.read()
            for v in in_row:
                fn.prefetch(row + v, write=True)
            c_at.set(fn.select((row < c_last) & (at > c_start), row + ldc, row, FLOATS))

        def fetch_ahead() -> None:
            left = ahead_left.read()
            with fn.range(fn.minimum(rate, left)):
                row = ahead_at.read()
                for v in in_row:
                    fn.prefetch(row + v, locality=2)
                ahead_at.set(row + ahead_step)
            ahead_left.set(left - rate)

        def copy_rows(at: Value) -> None:
            inside = at + COPY_LEAD * unroll < copy_until
            further = fn.select(inside, ahead_step * (rate * COPY_LEAD), rest[1])
            with fn.range(rate):
                row = ahead_at.read()
                for v in in_row:
                    fn.prefetch(row + further + v, locality=2)
                for v in range(vectors):
                    fn.store(sink + v * lanes, fn.load(row + v * lanes, lanes))
                ahead_at.set(row + ahead_step)
                sink.set(sink + width)

        def one_round(at: Value) -> None:
            fetch_c(at)
            if not copying:
                fetch_ahead()
            elif loosening:
                with fn.when(at < copy_until):
                    copy_rows(at)
            steps(unroll)

        done = fn.var(I64, 0)
        if copying:
            sink = fn.var(FLOATS, rest[0])
            copy_until = fn.minimum(main, ahead_rows // rate * unroll)
        if loosening:
            _emit_loosening(fn, rows, unroll, lanes, k, a, a_stride, rest[-2], rest[-1], one_round)
            done.set(main - main % LINE)
        elif copying:
            with fn.range(0, copy_until, unroll) as at:
                fetch_c(at)
                copy_rows(at)
                steps(unroll)
                done.set(at + unroll)
        with fn.range(done.read(), main, unroll) as at:
            one_round(at)
        with fn.range(main, k):
            steps(1)
        emit_epilogue(fn, acc, fn.opaque(c), ldc, alpha, beta, cols)
        fn.finish()
    return fn


def _emit_loosening(
    fn: Function,
    rows: int,
    unroll: int,
    lanes: int,
    k: Value,
    a: Value,
    a_stride: Value,
    source: Value,
    source_row: Value,
    one_round: Callable[[Value], None],
) -> None:
    """Emit the rounds for the first k - k % LINE steps. Each round also copies the next cache line of some rows of A.

    If k is no multiple of LINE, the last copy is of each row's last LINE floats, so all of A lies at `a` afterwards.
    """
    share = rows * unroll // LINE

    def move(origin: Value, target: Value, count: int) -> None:
        for row in range(count):
            for v in range(0, LINE, lanes):
                fn.store(target + a_stride * row + v, fn.load(origin + source_row * row + v, lanes))

    move(source, a, rows)
    with fn.range(0, k - k % LINE, LINE) as start:
        following = fn.minimum(start + LINE, k - LINE)
        far = following + _LOOSEN_LEAD
        # At the end of these rows, those of the next panel are prefetched.
        hint = fn.var(FLOATS, source + fn.select(far < k, far, far - k + source_row * rows))
        origin, target = fn.var(FLOATS, source + following), fn.var(FLOATS, a + following)
        with fn.range(start, start + LINE, unroll) as at:
            for row in range(share):
                fn.prefetch(hint.read() + source_row * row, locality=2)
            move(origin.read(), target.read(), share)
            hint += source_row * share
            origin += source_row * share
            target += a_stride * share
            one_round(at)
