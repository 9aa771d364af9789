"""The register tile: `rows` x (`vectors` x lanes) results kept in registers while k runs.

Every step of k multiplies one element of each row of A, broadcast, with one row of B, `vectors` wide:

                 b[k, 0..L)   b[k, L..2L)        registers on 16 lanes, 12 x 32:
        a[0, k]   acc[0][0]    acc[0][1]           24 accumulators
        a[1, k]   acc[1][0]    acc[1][1]            2 for the row of B
           :          :            :                1 or 2 for the broadcast element
        a[11, k]  acc[11][0]   acc[11][1]

The source's 16 x 6 AVX2 kernel is the same picture transposed (column-major there): 12 accumulators, 2
loads and 6 broadcasts a step, 15 of 16 registers.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.codegen.function import Function
from gemmlab.codegen.module import Module
from gemmlab.codegen.target import Target
from gemmlab.codegen.types import F32, I64, pointer, vector
from gemmlab.codegen.values import Value, Var

FLOATS = pointer(F32)
_LINE = 16
"""Floats in a cache line."""
_GROUP = 3
"""Rows reached from one base pointer: x86 addresses base, base + stride and base + 2 * stride."""
_C_LEAD = 8
"""Rounds before the end by which the tile of C is on its way: late, or the operands would push it out of L1 again."""
_COPY_LEAD = 8
"""Rounds between the prefetch of a row of B and its copy: some 400 cycles, the way from L3."""

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
)
"""`cols` is how many columns of C the tile covers; those beyond it are computed and dropped.

While the tile runs it looks after `ahead_rows` rows of B, `ahead_step` apart, a slice of the next strip.
"""

COPYING = (*SIGNATURE, ("packed", FLOATS), ("copy_rate", I64))
"""`copy_rate` rows are copied a round; `ahead_rows` is a multiple of it."""


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
        """Steps of k in one round of the loop: enough multiply-adds to carry the round's prefetches."""
        return 4 if self.rows * self.vectors > 12 else 8


def best_tile(target: Target) -> Tile:
    """The tile that fills the registers: 24 accumulators of 32, or 12 of 16 as in the source."""
    if target.registers == 16:
        return Tile(6, 2, target.lanes)
    if target.lanes == 4:
        return Tile(8, 3, 4)
    return Tile(12, 2, target.lanes)


def emit_microkernel(
    module: Module, rows: int, vectors: int, *, panel: bool, unroll: int = 4, copying: bool = False
) -> Function:
    """Emit `C[rows, cols] = alpha * A B + beta * C` for one register tile and any k >= 0.

    `panel`: A is k-major, element (r, k) at `a[k * a_stride + r]`; otherwise row-major, at
    `a[r * a_stride + k]`. B's row k starts at `b[k * b_stride]`. The rows `ahead` are prefetched into L2, or, with
    `copying`, packed one after the other to `packed`: a few loads and stores among many multiply-adds, where a
    packing pass of its own would wait for memory. `beta == 0` does not read C.
    """
    lanes = module.lanes
    width = vectors * lanes
    name = f"micro_{rows}x{vectors}_{'panel' if panel else 'rows'}{'_copying' if copying else ''}"
    with module.function(name, COPYING if copying else SIGNATURE, noalias=("c", "packed")) as fn:
        k, a, a_stride, b, b_stride, c, ldc, alpha, beta, cols, ahead, ahead_step, ahead_rows, *rest = fn.args
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

        def fetch_c(at: Value) -> None:
            row = c_at.read()
            for v in range(0, width, _LINE):
                fn.prefetch(row + v, write=True)
            c_at.set(fn.select((row < c_last) & (at > c_start), row + ldc, row, FLOATS))

        def fetch_ahead() -> None:
            row, left = ahead_at.read(), ahead_left.read()
            for step in range(2):
                for v in range(0, width, _LINE):
                    fn.prefetch(row + ahead_step * step + v, locality=2)
            ahead_at.set(fn.select(left > 2, row + ahead_step * 2, row, FLOATS))
            ahead_left.set(left - 2)

        copied = fn.var(I64, 0)
        if copying:
            packed, rate = rest
            sink = fn.var(FLOATS, packed)
            lead = ahead_step * (rate * _COPY_LEAD)
            with fn.range(0, fn.minimum(main, ahead_rows // rate * unroll), unroll) as at:
                fetch_c(at)
                with fn.range(rate):
                    row = ahead_at.read()
                    for v in range(0, width, _LINE):
                        fn.prefetch(row + lead + v)
                    for v in range(vectors):
                        fn.store(sink + v * lanes, fn.load(row + v * lanes, lanes))
                    ahead_at.set(row + ahead_step)
                    sink += width
                steps(unroll)
                copied.set(at + unroll)
        with fn.range(copied.read(), main, unroll) as at:
            fetch_c(at)
            if not copying:
                fetch_ahead()
            steps(unroll)
        with fn.range(main, k):
            steps(1)
        _emit_epilogue(fn, acc, fn.opaque(c), ldc, alpha, beta, cols)
        fn.finish()
    return fn


def _emit_epilogue(
    fn: Function, acc: list[list[Var]], c: Value, ldc: Value, alpha: Value, beta: Value, cols: Value
) -> None:
    """C = alpha * acc + beta * C, in four forms: C read or not, all columns or a mask on the last vector."""
    vectors, lanes = len(acc[0]), acc[0][0].type.lanes

    def write(*, read: bool, mask: Value | None) -> None:
        scale, keep = fn.splat(alpha, lanes), fn.splat(beta, lanes)
        for row, results in enumerate(acc):
            for v, result in enumerate(results):
                where = c + ldc * row + v * lanes
                use = mask if v == vectors - 1 else None
                value = result.read() * scale
                if read:
                    value = fn.fma(keep, fn.load(where, lanes, use), value)
                fn.store(where, value, use)

    with fn.choose(cols >= vectors * lanes) as whole:
        with whole.yes(), fn.choose(beta.equals(0.0)) as fresh:
            with fresh.yes():
                write(read=False, mask=None)
            with fresh.no():
                write(read=True, mask=None)
        with whole.no():
            mask = fn.first_lanes(cols - (vectors - 1) * lanes, lanes)
            with fn.choose(beta.equals(0.0)) as fresh:
                with fresh.yes():
                    write(read=False, mask=mask)
                with fresh.no():
                    write(read=True, mask=mask)
