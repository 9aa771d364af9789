"""Names of an operation's values: in Python, in CUDA source and in the expressions of a kernel file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from gemmlab.ops.catalog import all_ops, find_op
from gemmlab.ops.op import Op


def other_operation(op: str) -> str:
    """Return advice for the author of a kernel that computes something else than the operation `op`."""
    return (
        f"A kernel that computes something else than {op} needs its operation, in a Python file, as "
        "examples/operations/softmax.py is one: gemmlab check softmax.cu --op ./softmax.py"
    )


@dataclass(frozen=True, slots=True)
class OpNames:
    """Names of an operation's values, as in `Op.scalars` (`whole` and `real` numbers) and `Op.operands`."""

    op: str
    whole: tuple[str, ...]
    real: tuple[str, ...]
    operands: tuple[str, ...]
    flags: Mapping[str, tuple[int, ...]]
    """The names in `whole` that have few values and may be compile-time parameters, with all of their values."""
    records: tuple[str, ...] = ()
    """Names of structures that a kernel takes by value (`np.void` in `Op.scalars`)."""
    factors: Mapping[str, str] = field(default_factory=dict)
    """Operand -> the scalar that multiplies it (`Op.factors`); operands without such a scalar are left out."""
    extents: tuple[str, ...] = ()
    """Names of sizes, without leading dimensions, strides and flags."""

    @property
    def in_expressions(self) -> tuple[str, ...]:
        """Names that expressions may use: `M`, `N`, `K`, `lda`, ..., `TRANS_A`, ..., `alpha`, `beta`."""
        return tuple(shown(name) for name in (*self.whole, *self.real))


def names_of(op: str) -> OpNames:
    """Return the names of an operation's values; `UsageError` for an unknown operation."""
    operation = find_op(op)
    known = _KNOWN.get(op)
    if known is None or known[0] is not operation:
        known = _KNOWN[op] = operation, _names(operation)
    return known[1]


_NUMBERS = (np.number, np.bool_)
_KNOWN: dict[str, tuple[Op, OpNames]] = {}
"""Names by operation that were found before. `ops.catalog.declare` may give a name to another operation."""


def _names(operation: Op) -> OpNames:
    problem = operation.parse_sizes("1")[0]
    scalars = operation.scalars(problem)
    whole = tuple(name for name, value in scalars.items() if isinstance(value, np.integer))
    records = tuple(name for name, value in scalars.items() if isinstance(value, np.void))
    real = tuple(name for name in scalars if name not in (*whole, *records))
    operands = tuple(operand.name for operand in operation.operands(problem))
    return OpNames(
        operation.name, whole, real, operands, operation.flags, records, operation.factors, operation.extents
    )  # fmt: skip


@cache
def shown(name: str) -> str:
    """Return the name of an operation's value as CUDA kernels write it: single letters and flags in capitals."""
    return name.upper() if len(name) == 1 or name in _all_flags() else name


@cache
def _all_flags() -> frozenset[str]:
    return frozenset(name for op in all_ops() for name in op.flags)


def texture_over(operand: str) -> str:
    """Return the name of the texture object over an operand: `texture(a)`."""
    return f"texture({operand})"


def map_over(operand: str) -> str:
    """Return the name of the tensor map over an operand: `tensor_map(a)`."""
    return f"tensor_map({operand})"


def without_memory(operand: str) -> dict[str, Any]:
    """Return the values of an operand, its texture and its tensor map in launches that are inspected but never run."""
    return {operand: None, texture_over(operand): np.uint64(0), map_over(operand): np.uint64(0)}


def problem_names(scalars: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers among `scalars` by the names that expressions use; other entries, such as buffers, are left
    out.
    """
    return {shown(name): value.item() for name, value in scalars.items() if isinstance(value, _NUMBERS)}
