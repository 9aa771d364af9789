"""C[i] = op(A[i]) * op(B[i]) for matrices of different shapes: the products of one call of `gemmlab.gemm_group`.

The matrices of each operand lie in one row of memory (`ops.in_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gemmlab.core.elements import Element
from gemmlab.core.precision import FLOAT32, PRECISIONS
from gemmlab.ops.batch_problem import OPERANDS
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.group_problem import GroupProblem, parse_groups
from gemmlab.ops.in_rows import filled, referenced
from gemmlab.ops.op import GFLOPS, LIMITS, Expected, Float32Array, Op, Operand, only_float32

__all__ = ["GroupOp", "GroupProblem"]

_ONE = GemmOp()
_CASES = "1,5,1/17/40x3/1/33x9/64/1,3*31/32/33x20x7,64*8"


class GroupOp:
    """The operation `group` (see `gemmlab.ops.op.Op`). No kernel of the catalog states it: a launch of the kernel for
    groups gets its table of products from the library call.
    """

    name = "group"
    unit = GFLOPS
    limit = LIMITS[GFLOPS]
    extents: tuple[str, ...] = ()
    precisions: tuple[str, ...] = PRECISIONS
    usual_sizes: Mapping[str, str] = {}
    file: str | None = ""
    flags: Mapping[str, tuple[int, ...]] = GemmOp.flags
    factors: Mapping[str, str] = {}

    def typed(self, types: Mapping[str, Element]) -> Op:
        """Return the operation itself; `UsageError` for types other than float32."""
        return only_float32(self, types)

    def parse_sizes(self, text: str) -> list[GroupProblem]:
        """Return groups from sizes as in `ops/group_problem.py`: `3/17/5x14336x4096:nt`."""
        return parse_groups(text)

    def problem_from_json(self, data: Mapping[str, Any]) -> GroupProblem:
        """Return the problem of JSON values from `GroupProblem.to_json`.

        Raises `UsageError` for unknown, missing or malformed fields.
        """
        return GroupProblem.from_json(data)

    def dot_length(self, problem: GroupProblem) -> int:
        """Return the largest K of a product."""
        return max(shape.k for shape in problem.shapes)

    def in_layouts(self, problem: GroupProblem, layouts: Sequence[str]) -> list[GroupProblem]:
        """Return the same group once in each of `layouts`, with the smallest leading dimensions."""
        return [
            GroupProblem(tuple(shape.with_layout(layout) for shape in problem.shapes), problem.each)
            for layout in layouts
        ]

    def flops(self, problem: GroupProblem) -> int:
        """Return the sum of 2MNK over all products."""
        return sum(map(_ONE.flops, problem.products))

    def bytes_moved(self, problem: GroupProblem) -> int:
        """Return the sum of the bytes of all products (`GemmOp.bytes_moved`)."""
        return sum(map(_ONE.bytes_moved, problem.products))

    def work(self, problem: GroupProblem) -> int:
        """Return the number of operations, as `flops`."""
        return self.flops(problem)

    def operands(self, problem: GroupProblem) -> tuple[Operand, ...]:
        """Return a, b, c, each as one row of memory from the first matrix to the last."""
        words = {name: problem.words(name) for name in OPERANDS}
        return tuple(Operand(n, 1, words[n], max(1, words[n]), "out" if n == "c" else "in") for n in OPERANDS)

    def scalars(self, problem: GroupProblem) -> dict[str, Any]:
        """Return the flags of the first product as int64; extents and leading dimensions are in the problem."""
        return {name: _ONE.scalars(problem.shapes[0])[name] for name in self.flags}

    def fill(self, problem: GroupProblem, rng: np.random.Generator) -> dict[str, Float32Array]:
        """Return uniform data in a and b, and NaN in c.

        Gaps between matrices and rows hold NaN in a and b, and `in_rows.UNTOUCHED` in c.
        """
        return filled({name: problem.words(name) for name in OPERANDS}, problem.inside, rng)

    def reference(
        self, problem: GroupProblem, inputs: Mapping[str, Float32Array], roundings: int | None = None,
        precision: str = FLOAT32,
    ) -> dict[str, Expected]:  # fmt: skip
        """Return every product in float64 with its bound, as for one product. Gaps keep their contents, with bound
        0.
        """
        return referenced(inputs, problem.inside, roundings, precision)

    def cases(
        self, layouts: Sequence[str], rng: np.random.Generator, scale: str = "quick"  # noqa: ARG002 - all are stated
    ) -> Iterator[GroupProblem]:  # fmt: skip
        """Yield a few groups in each of `layouts`: one product, equal ones, different ones."""
        for problem in parse_groups(_CASES):
            yield from self.in_layouts(problem, layouts)
