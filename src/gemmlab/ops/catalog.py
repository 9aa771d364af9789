"""Operations by name."""

from __future__ import annotations

from gemmlab.core.errors import UsageError
from gemmlab.ops.op import Op


def find_op(name: str) -> Op:
    """The operation of that name; `UsageError` names those there are."""
    from gemmlab.ops.gemm import GemmOp

    known: tuple[Op, ...] = (GemmOp(),)
    for op in known:
        if op.name == name:
            return op
    raise UsageError(f"no operation named {name!r}; operations: {', '.join(op.name for op in known)}")
