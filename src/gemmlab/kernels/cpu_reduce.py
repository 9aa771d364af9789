"""The common part of the CPU kernels that reduce: their signature and their descriptor.

Every one is a function `status = name(n, x, out)` that reduces the `n` contiguous float32 at `x` to one at `out`;
`threads` follows if a kernel takes it. The operator is known when the code is generated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gemmlab.core.program import Config
from gemmlab.ir.types import F32, I64, Type, pointer
from gemmlab.kernels.cpu_kernel import Arguments, Emit, cpu_kernel
from gemmlab.kernels.kernel import Kernel

ARGUMENTS: Mapping[str, Type] = {"n": I64, "x": pointer(F32), "out": pointer(F32), "threads": I64}
PLAIN = ("n", "x", "out")


def reduce_kernel(
    file: str, *, emit: Emit, roundings: Callable[[Config, int], int], args: tuple[str, ...] = PLAIN, **facts: Any
) -> Kernel:
    """Return the descriptor of the kernel in `file`; `facts` are further arguments of `cpu_kernel`.

    `roundings(config, n)` returns the most consecutive additions that one of n terms goes through.
    """

    def of_problem(instance: Config, scalars: Mapping[str, Any]) -> int:
        return roundings(instance, int(scalars["n"]))

    return cpu_kernel(
        file, emit=emit, args=args, op="reduce", types=ARGUMENTS, from_problem=("OPERATOR",), roundings=of_problem,
        **facts,
    )  # fmt: skip


def operator_of(g: Arguments) -> int:
    """Return the operator: `SUM`, `MAX` or `MIN` of `codegen/rowsum.py`."""
    return g.config["OPERATOR"]
