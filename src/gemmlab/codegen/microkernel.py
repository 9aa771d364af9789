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
    ("next_a", FLOATS),
    ("next_a_step", I64),
    ("next_a_lines", I64),
)
"""`cols` is how many columns of C the tile covers; those beyond it are computed and dropped.

While the tile runs it prefetches into L2 what comes later: `ahead_rows` rows of B, `ahead_step` apart (a slice of
the next strip), and `next_a_lines` cache lines of A, `next_a_step` apart (a slice of the next block).
"""

THROUGH = (*SIGNATURE, ("packed", FLOATS))


@dataclass(frozen=True, slots=True)
class Tile:
    """A full register tile: MR rows by NV vectors (NR = NV * lanes columns)."""

    rows: int
    vectors: int
    lanes: int

    @property
    def cols(self) -> int:
        return self.vectors * self.lanes


def best_tile(target: Target) -> Tile:
    """The tile that fills the registers: 24 accumulators of 32, or 12 of 16 as in the source."""
    if target.registers == 16:
        return Tile(6, 2, target.lanes)
    if target.lanes == 4:
        return Tile(8, 3, 4)
    return Tile(12, 2, target.lanes)


def emit_microkernel(
    module: Module, rows: int, vectors: int, *, panel: bool, through: bool = False
) -> Function:
    """Emit `C[rows, cols] = alpha * A B + beta * C` for one register tile and any k >= 0.

    `panel`: A is k-major, element (r, k) at `a[k * a_stride + r]`; otherwise row-major, at
    `a[r * a_stride + k]`. B's row k starts at `b[k * b_stride]`. With `through`, the rows of B are read
    where they lie and also written to `packed` (rows of `vectors * lanes`): packing costs two stores a step
    instead of a pass of its own. `beta == 0` does not read C.
    """
    lanes = module.lanes
    name = f"micro_{rows}x{vectors}_{'panel' if panel else 'rows'}{'_through' if through else ''}"
    with module.function(name, THROUGH if through else SIGNATURE, noalias=("c", "packed")) as fn:
        k, a, a_stride, b, b_stride, c, ldc, alpha, beta, cols, ahead, ahead_step, ahead_rows, next_a, next_a_step, next_a_lines, *rest = fn.args
        acc = [[fn.var(vector(F32, lanes), 0.0) for _ in range(vectors)] for _ in range(rows)]
        starts = [a] if panel else [a + a_stride * row for row in range(0, rows, _GROUP)]
        a_at = [fn.var(FLOATS, start) for start in starts]
        b_at = fn.var(FLOATS, b)
        packed_at = fn.var(FLOATS, rest[0]) if through else None

        c_at, c_last = fn.var(FLOATS, c), fn.opaque(c + ldc * (rows - 1))
        ahead_at, ahead_left = fn.var(FLOATS, ahead), fn.var(I64, ahead_rows)

        next_at, next_left = fn.var(FLOATS, next_a), fn.var(I64, next_a_lines)

        def prefetch() -> None:
            """A row of the C tile and a little of what comes later: few at a time, for line buffers are few."""
            row_of_c, row_of_b, left = c_at.read(), ahead_at.read(), ahead_left.read()
            for v in range(0, vectors * lanes, _LINE):
                fn.prefetch(row_of_c + v, write=True)
            c_at.set(fn.select(row_of_c < c_last, row_of_c + ldc, row_of_c, FLOATS))
            for row in range(2):
                for v in range(0, vectors * lanes, _LINE):
                    fn.prefetch(row_of_b + ahead_step * row + v, locality=2)
            more = left > 2
            ahead_at.set(fn.select(more, row_of_b + ahead_step * 2, row_of_b, FLOATS))
            ahead_left.set(left - 2)
            line, lines = next_at.read(), next_left.read()
            fn.prefetch(line, locality=2)
            next_at.set(fn.select(lines > 1, line + next_a_step, line, FLOATS))
            next_left.set(lines - 1)

        def element(bases: list[Value], row: int, step: int) -> Value:
            if panel:
                return fn.load(bases[0] + a_stride * step + row)
            base = bases[row // _GROUP] + step
            inside = row % _GROUP
            return fn.load(base if inside == 0 else base + a_stride * inside)

        def steps(count: int) -> None:
            bases = [fn.opaque(at.read()) for at in a_at]
            row_of_b = fn.opaque(b_at.read())
            packed = packed_at.read() if packed_at is not None else None
            for step in range(count):
                here = row_of_b + b_stride * step
                b_row = [fn.load(here + v * lanes, lanes) for v in range(vectors)]
                if packed is not None:
                    for v in range(vectors):
                        fn.store(packed + (step * vectors + v) * lanes, b_row[v])
                for row in range(rows):
                    broadcast = fn.splat(element(bases, row, step), lanes)
                    for v in range(vectors):
                        acc[row][v].set(fn.fma(broadcast, b_row[v], acc[row][v].read()))
                    fn.pin(acc[row])
            for at, base in zip(a_at, bases, strict=True):
                at.set(base + (a_stride * count if panel else count))
            b_at.set(row_of_b + b_stride * count)
            if packed is not None and packed_at is not None:
                packed_at.set(packed + count * vectors * lanes)

        unroll = 4 if rows * vectors > 12 else 8
        main = k - (k & (unroll - 1))
        with fn.range(0, main, unroll):
            prefetch()
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
