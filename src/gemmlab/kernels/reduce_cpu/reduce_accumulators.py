"""Several accumulators in turn: as many additions in flight as the processor can execute.

    part[0] += x[i]   part[1] += x[i + 1]   ..   part[7] += x[i + 7]

Eight of them cover an addition's four cycles on two units. Each chain is an eighth as long, and so is the error.
"""

from __future__ import annotations

from gemmlab.codegen.rowsum import IDENTITIES, combine, tree
from gemmlab.ir.function import Function
from gemmlab.ir.types import F32
from gemmlab.kernels.cpu_kernel import Arguments, keeps
from gemmlab.kernels.cpu_reduce import operator_of, reduce_kernel

ACCUMULATORS = 8


def emit(fn: Function, g: Arguments) -> None:
    operator, count = operator_of(g), g.config["ACCUMULATORS"]
    parts = [fn.var(F32, IDENTITIES[operator]) for _ in range(count)]
    whole = g.n - g.n % count
    with fn.range(0, whole, count) as i:
        for index, part in enumerate(parts):
            part.set(combine(fn, operator, part.read(), g.x[i + index]))
    with fn.range(whole, g.n) as i:
        parts[0].set(combine(fn, operator, parts[0].read(), g.x[i]))
    g.out[0] = tree(fn, operator, [part.read() for part in parts])


KERNEL = reduce_kernel(
    __file__,
    after="reduce_scalar",
    summary="several accumulators in turn",
    idea="Additions that do not wait for each other run at once: as many as the units take, not one in four cycles.",
    source="what every guide to fast loops says of sums; the chains are the article's tree with few leaves",
    emit=emit,
    params={"ACCUMULATORS": ACCUMULATORS},
    tune={"ACCUMULATORS": (2, 4, 8, 16)},
    objection=keeps("1 <= ACCUMULATORS <= 16"),
    # The chain, the rest (less than a turn), the tree.
    roundings=lambda config, n: n // config["ACCUMULATORS"] + config["ACCUMULATORS"] + 4,
)
