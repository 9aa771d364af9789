"""C[i] = alpha * op(A[i]) * op(B[i]) + beta * C[i] for the matrices of a batch, which lie at equal distances in memory.

Each operand is one row of memory, from the first matrix to the last, gaps included (`ops.in_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gemmlab.core.elements import Element
from gemmlab.core.precision import FLOAT32, PRECISIONS
from gemmlab.ops.batch_cases import contract_cases
from gemmlab.ops.batch_problem import OPERANDS, PACKED, BatchProblem
from gemmlab.ops.batch_records import GROUP, GroupProduct, axes_value, group_value
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_sizes import Products, parse_products
from gemmlab.ops.in_rows import Inside, filled, referenced
from gemmlab.ops.op import GFLOPS, LIMITS, Expected, Float32Array, Op, Operand, only_float32

__all__ = ["BatchOp", "BatchProblem"]

_ONE = GemmOp()


class BatchOp:
    """The operation `batch` (see `gemmlab.ops.op.Op`)."""

    name = "batch"
    unit = GFLOPS
    limit = LIMITS[GFLOPS]
    extents: tuple[str, ...] = ("m", "n", "k")
    precisions: tuple[str, ...] = PRECISIONS
    usual_sizes: Mapping[str, str] = {}
    file: str | None = ""
    flags: Mapping[str, tuple[int, ...]] = GemmOp.flags
    factors: Mapping[str, str] = GemmOp.factors

    def typed(self, types: Mapping[str, Element]) -> Op:
        """Return the operation itself; `UsageError` for types other than float32."""
        return only_float32(self, types)

    def parse_sizes(self, text: str) -> list[BatchProblem]:
        """Return batches with alpha 1 and beta 0 from sizes as in `ops/gemm_sizes.py`: `16*512x64x512:nt`."""
        return [_batch(one) for one in parse_products(text)]

    def problem_from_json(self, data: Mapping[str, Any]) -> BatchProblem:
        """Return the problem of JSON values from `BatchProblem.to_json`.

        Raises `UsageError` for unknown, missing or malformed fields.
        """
        own = ("batch", *(f"stride_{name}" for name in OPERANDS))
        one = _ONE.problem_from_json({name: value for name, value in data.items() if name not in own})
        return BatchProblem.from_json(data, one)

    def dot_length(self, problem: BatchProblem) -> int:
        """Return K, the number of terms of each result."""
        return problem.k

    def in_layouts(self, problem: BatchProblem, layouts: Sequence[str]) -> list[BatchProblem]:
        """Return the same batch once in each of `layouts`, with the smallest leading dimensions."""
        return [problem.with_layout(layout) for layout in layouts]

    def flops(self, problem: BatchProblem) -> int:
        """Return 2MNK times the number of products."""
        return problem.batch * _ONE.flops(problem)

    def bytes_moved(self, problem: BatchProblem) -> int:
        """Return the bytes of all products (`GemmOp.bytes_moved`); a matrix that all products share counts once."""
        once = _ONE.bytes_moved(problem)
        shared = sum(4 * problem.stored(name)[0] * problem.stored(name)[1] for name in "ab" if not problem.step(name))
        return problem.batch * once - (0 if problem.without_product else max(0, problem.batch - 1) * shared)

    def work(self, problem: BatchProblem) -> int:
        """Return the number of operations, as `flops`."""
        return self.flops(problem)

    def operands(self, problem: BatchProblem) -> tuple[Operand, ...]:
        """Return a, b, c, each as one row of memory from the first matrix to the last."""
        roles = {"a": "in", "b": "in", "c": "out" if problem.beta == 0.0 else "inout"}
        return tuple(Operand(n, 1, problem.words(n), max(1, problem.words(n)), roles[n]) for n in OPERANDS)

    def scalars(self, problem: BatchProblem) -> dict[str, Any]:
        """Return the scalars of one product, the number of products and the strides as int64, and two structures.

        `axes` is the batch as one axis (`axes_value`), `group` its first `GROUP` products at most (`group_value`).
        The field `first` of a product in `group` is its index: it counts the tiles of one product as 1.
        """
        p, (a, b, c) = problem, (problem.step(name) for name in OPERANDS)
        group = [
            GroupProduct(i * a, i * b, i * c, p.m, p.n, p.k, p.lda, p.ldb, p.ldc, first=i)
            for i in range(min(p.batch, GROUP))
        ]
        return {
            **_ONE.scalars(p), "batch": np.int64(p.batch),
            "stride_a": np.int64(a), "stride_b": np.int64(b), "stride_c": np.int64(c),
            "axes": axes_value([(p.batch, a, b, c)]), "group": group_value(group),
        }  # fmt: skip

    def fill(self, problem: BatchProblem, rng: np.random.Generator) -> dict[str, Float32Array]:
        """Return data of the kind `problem.contents`, and NaN in every operand that must not be read.

        Gaps between matrices and rows hold NaN in a and b, and `in_rows.UNTOUCHED` in c.
        """
        return filled({name: problem.words(name) for name in OPERANDS}, _inside(problem), rng)

    def reference(
        self, problem: BatchProblem, inputs: Mapping[str, Float32Array], roundings: int | None = None,
        precision: str = FLOAT32,
    ) -> dict[str, Expected]:  # fmt: skip
        """Return every product in float64 with its bound, as for one product. Gaps keep their contents, with bound
        0.
        """
        return referenced(inputs, _inside(problem), roundings, precision)

    def cases(self, layouts: Sequence[str], rng: np.random.Generator, scale: str = "quick") -> Iterator[BatchProblem]:  # noqa: ARG002 - all of them are stated
        """Yield batches that cover the whole contract, in each of `layouts`. `scale` is `"quick"` or `"full"`."""
        return contract_cases(layouts, scale)


def _batch(products: Products) -> BatchProblem:
    p, shared = products.problem, {name: 0 if name == products.shared else PACKED for name in "ab"}
    return BatchProblem(
        p.m, p.n, p.k, lda=p.lda, ldb=p.ldb, ldc=p.ldc, trans_a=p.trans_a, trans_b=p.trans_b, batch=products.batch,
        stride_a=shared["a"], stride_b=shared["b"],
    )  # fmt: skip


def _inside(problem: BatchProblem) -> Iterator[Inside]:
    """Yield the products of a batch."""
    steps, one = {name: problem.step(name) for name in OPERANDS}, problem.one
    for index in range(problem.batch):
        yield Inside(one, {name: index * step for name, step in steps.items()})
