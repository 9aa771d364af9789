"""The yardstick: how many fused multiply-adds a core does when nothing else is asked of it."""

from __future__ import annotations

from gemmlab.codegen.function import Function
from gemmlab.codegen.module import Module
from gemmlab.codegen.types import F32, I64, pointer, vector


def chains(module: Module) -> int:
    """Independent accumulators: three quarters of the registers, which covers latency times units everywhere."""
    return module.target.registers * 3 // 4


def emit_peak(module: Module) -> Function:
    """Emit the exported `peak(steps, values)`: `steps` rounds of FMAs in registers; values[0..2) are read.

    A round is `chains` multiply-adds of `lanes` float32 each. The sum lands in values[2 .. 2 + lanes).
    """
    lanes = module.lanes
    with module.function("peak", [("steps", I64), ("values", pointer(F32))], exported=True) as fn:
        steps, values = fn.args
        factor, addend = (fn.splat(fn.load(values + index), lanes) for index in (0, 1))
        acc = [fn.var(vector(F32, lanes), factor * (index + 1.0)) for index in range(chains(module))]
        with fn.range(steps):
            for total in acc:
                total.set(fn.fma(total.read(), factor, addend))
        result = acc[0].read()
        for total in acc[1:]:
            result = result + total.read()
        fn.store(values + 2, result)
        fn.finish()
    return fn
