"""One number after the other into one accumulator: every addition waits for the one before.

    total = total + x[i]

Four cycles a number, whatever the processor could do meanwhile; and one long chain, whose error grows with its length.
"""

from __future__ import annotations

from gemmlab.codegen.rowsum import IDENTITIES, combine
from gemmlab.ir.function import Function
from gemmlab.ir.types import F32
from gemmlab.kernels.cpu_kernel import Arguments
from gemmlab.kernels.cpu_reduce import operator_of, reduce_kernel


def emit(fn: Function, g: Arguments) -> None:
    operator = operator_of(g)
    total = fn.var(F32, IDENTITIES[operator])
    with fn.range(g.n) as i:
        total.set(combine(fn, operator, total.read(), g.x[i]))
    g.out[0] = total


KERNEL = reduce_kernel(
    __file__,
    after="",
    summary="one accumulator, one number after the other",
    idea="The plain definition: every addition waits for the one before, four cycles each.",
    source="the loop that everybody writes first",
    emit=emit,
    roundings=lambda _config, n: n,
)
