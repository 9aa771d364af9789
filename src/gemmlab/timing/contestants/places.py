"""The layouts of the operands of products and batches as they are stored: extents and strides."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.group_problem import GroupProblem
from gemmlab.timing.contestants.contestant import Work

PRODUCTS = ("gemm", "batch")
"""The operations that are products of matrices."""
GROUP = "group"
"""The operation that is a list of products."""


@dataclass(frozen=True, slots=True)
class Place:
    """The layout of an operand as it is stored: extents and strides in elements; a batch has a leading axis."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    first: int = 0
    """The index of the first element in the operand's memory."""


def stored(work: Work, name: str) -> Place:
    """Return the layout of operand `"a"`, `"b"` or `"c"`. A matrix that all products share has no leading axis."""
    scalars = work.scalars
    m, n, k = (int(scalars[extent]) for extent in "mnk")
    rows, cols = {"a": (m, k), "b": (k, n), "c": (m, n)}[name]
    if scalars.get(f"trans_{name}", 0):
        rows, cols = cols, rows
    ld, batch, step = (int(scalars.get(key, 0)) for key in (f"ld{name}", "batch", f"stride_{name}"))
    if "batch" in scalars and (name == "c" or step):
        return Place((batch, rows, cols), (step, ld, 1))
    return Place((rows, cols), (ld, 1), int(scalars.get(f"first_{name}", 0)))


def products_of(work: Work) -> list[Work]:
    """Return the products of a group, each as the work of a single product; their operands lie within the group's."""
    op = GemmOp()
    return [
        replace(
            work, op=op.name, problem=product.to_json(), flops=op.flops(product),
            scalars={**op.scalars(product), **{f"first_{name}": index for name, index in first.items()}},
        )
        for product, first in GroupProblem.from_json(work.problem).inside
    ]  # fmt: skip
