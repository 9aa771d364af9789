"""Find operations by name: those of gemmlab, and those that a user declared in this process."""

from __future__ import annotations

from functools import cache

from gemmlab.core.elements import element
from gemmlab.core.errors import UsageError
from gemmlab.ops.op import GFLOPS, Op


@cache
def all_ops() -> tuple[Op, ...]:
    """Return every operation of gemmlab, for float32 operands. Declared operations are not among them."""
    from gemmlab.ops.batch import BatchOp
    from gemmlab.ops.gemm import GemmOp
    from gemmlab.ops.group import GroupOp
    from gemmlab.ops.reduce import ReduceOp
    from gemmlab.ops.sums_op import SumsOp

    return GemmOp(), ReduceOp(), BatchOp(), SumsOp(), GroupOp()


_DECLARED: dict[str, Op] = {}
"""Operations declared in this process, by name."""


def declare(op: Op) -> None:
    """Make an operation known to `find_op`. It replaces one that was declared earlier with the same name.

    Raises `UsageError` for the name of an operation of gemmlab.
    """
    if any(op.name == known.name for known in all_ops()):
        raise UsageError(f"{op.name!r} is an operation of gemmlab; the declared one needs another name")
    _DECLARED[op.name] = op
    find_op.cache_clear()


@cache
def find_op(name: str) -> Op:
    """Return the operation of gemmlab, or declared in this process, that has this name.

    Types follow after a colon, if they are not float32: one for all operands (`gemm:float16`) or one for each
    (`gemm:int8,int8,int32`). Raises `UsageError` for an unknown name or type, or types that the operation cannot have.
    """
    known = {**_DECLARED, **{op.name: op for op in all_ops()}}
    base, colon, types = name.partition(":")
    if base not in known:
        known_names = ", ".join(op.name for op in all_ops())
        raise UsageError(
            f"no operation named {name!r}; operations: {known_names}, or one of a Python file, as --op ./{base}.py"
        )
    return _typed(known[base], types) if colon else known[base]


def unit_of(name: str) -> str:
    """Return the unit of an operation's speed, `"GFLOP/s"` or `"GB/s"`; `"GFLOP/s"` for an unknown operation.

    A record may have an operation that this process does not know.
    """
    try:
        return find_op(name).unit
    except UsageError:
        return GFLOPS


def _typed(op: Op, types: str) -> Op:
    operands = [operand.name for operand in op.operands(op.parse_sizes("1")[0])]
    names = types.split(",")
    names = names * len(operands) if len(names) == 1 else names
    if len(names) != len(operands):
        raise UsageError(f"operation {op.name}:{types}: one type, or one for each of {', '.join(operands)}")
    return op.typed(dict(zip(operands, map(element, names), strict=True)))
