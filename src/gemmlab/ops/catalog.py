"""Operations by name."""

from __future__ import annotations

from functools import cache

from gemmlab.core.errors import UsageError
from gemmlab.ops.op import Op


@cache
def all_ops() -> tuple[Op, ...]:
    """Every operation."""
    from gemmlab.ops.batch import BatchOp
    from gemmlab.ops.gemm import GemmOp
    from gemmlab.ops.reduce import ReduceOp
    from gemmlab.ops.sums_op import SumsOp

    return GemmOp(), ReduceOp(), BatchOp(), SumsOp()


def find_op(name: str) -> Op:
    """Return the operation of that name; `UsageError` names the known ones."""
    for op in all_ops():
        if op.name == name:
            return op
    raise UsageError(f"no operation named {name!r}; operations: {', '.join(op.name for op in all_ops())}")
