"""The results of a register tile on their way from registers to C."""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.ir.function import Function
from gemmlab.ir.values import Value, Var


def emit_epilogue(
    fn: Function, acc: list[list[Var]], c: Value, ldc: Value, alpha: Value, beta: Value, cols: Value
) -> None:
    """Emit `C = alpha * acc + beta * C` for the first `cols` columns of a tile; C is not read if beta is 0.

    `acc` has a list of vectors for each row; only columns of the last vector may be left out. If none are, alpha is 1,
    and beta is 0 or 1, there is no multiplication, which would compete with multiply-adds; the result is the same to
    the bit.
    """
    vectors, lanes = len(acc[0]), acc[0][0].type.lanes

    def write(combine: Callable[[Value, Value, Value | None], Value], mask: Value | None = None) -> None:
        for row, results in enumerate(acc):
            for v, result in enumerate(results):
                where = c + ldc * row + v * lanes
                use = mask if v == vectors - 1 else None
                fn.store(where, combine(result.read(), where, use), use)

    def scaled(result: Value, _where: Value, _use: Value | None) -> Value:
        return result * fn.splat(alpha, lanes)

    def scaled_sum(result: Value, where: Value, use: Value | None) -> Value:
        return fn.fma(fn.splat(beta, lanes), fn.load(where, lanes, use), result * fn.splat(alpha, lanes))

    def write_general(mask: Value | None = None) -> None:
        with fn.choose(beta.equals(0.0)) as fresh:
            with fresh.yes():
                write(scaled, mask)
            with fresh.no():
                write(scaled_sum, mask)

    with fn.choose(cols >= vectors * lanes) as whole:
        with whole.yes(), fn.choose(alpha.equals(1.0) & beta.equals(0.0)) as plain:
            with plain.yes():
                write(lambda result, _where, _use: result)
            with plain.no(), fn.choose(alpha.equals(1.0) & beta.equals(1.0)) as adding:
                with adding.yes():
                    write(lambda result, where, _use: result + fn.load(where, lanes))
                with adding.no():
                    write_general()
        with whole.no():
            write_general(fn.first_lanes(cols - (vectors - 1) * lanes, lanes))
