"""Dot products, many in one call: the short ones of small matrices times vectors.

Terms are added in the order of `gemv.emit_dot`, so a result is the same to the bit in a stack and alone. If k is no
more than a vector's lanes, a dot product is one multiplication of vectors and the sum of its lanes; for longer k,
`gemv_dot` is called for each product.
"""

from __future__ import annotations

from gemmlab.codegen.gemv import DOT, update
from gemmlab.codegen.microkernel import FLOATS
from gemmlab.codegen.small_tiles import STEPS
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, vector
from gemmlab.ir.values import Value

DOTS = (*STEPS, *DOT)
"""Arguments of `count` products: those of the first as in `gemv.DOT`, and the distances in floats, a_next, b_next and
c_next, from each product's a, x and y to those of the next.
"""


def emit_dots(module: Module) -> Function:
    """Emit `small_dots(*DOTS)`: `count` products of a matrix and a vector, for k > 0.

    The module has `gemv_dot` already.
    """
    lanes, dot = module.lanes, module["gemv_dot"]
    with module.function("small_dots", DOTS) as fn:
        count, a_next, b_next, c_next, m, k, alpha, a, a_row, x, beta, y, y_step = fn.args
        a_at, x_at, y_at = (fn.var(FLOATS, start) for start in (a, x, y))
        mask = fn.first_lanes(k, lanes)

        def single(left: Value, right: Value) -> Value:
            return fn.fma(left[0], right[0], fn.constant(0.0, F32)) + 0.0

        def short(left: Value, right: Value) -> Value:
            zeros = fn.constant(0.0, vector(F32, lanes))
            # The second sum of `gemv_dot` is empty: adding it turns -0 into 0.
            return fn.lane_sum(fn.fma(fn.load(left, lanes, mask), fn.load(right, lanes, mask), zeros) + zeros)

        def advance() -> None:
            for where, step in ((a_at, a_next), (x_at, b_next), (y_at, c_next)):
                where.set(where + step)

        with fn.when(k > lanes):
            with fn.range(count):
                fn.call(dot, m, k, alpha, a_at, a_row, x_at, beta, y_at, y_step)
                advance()
            fn.ret()
        for condition, total in ((k.equals(1), single), (k > 1, short)):
            with fn.when(condition), fn.range(count):
                left, right, where = a_at.read(), x_at.read(), y_at.read()
                with fn.range(m) as i:
                    update(fn, where + y_step * i, total(left + a_row * i, right), alpha, beta)
                advance()
        fn.finish()
    return fn
