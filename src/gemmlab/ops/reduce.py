"""The reduction of contiguous float32 numbers, any length, to one: their sum, their maximum or their minimum."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from gemmlab.core.elements import Element
from gemmlab.core.errors import UsageError
from gemmlab.core.precision import FLOAT32, FLOAT_BYTES, OVERFLOW, PRECISIONS, UNIT_ROUNDOFF
from gemmlab.ops.op import GBS, LIMITS, Expected, Float32Array, Op, Operand, only_float32
from gemmlab.ops.reduce_cases import contract_cases, operand_contents
from gemmlab.ops.reduce_problem import OPERATORS, ReduceProblem
from gemmlab.ops.sizes import parse_sizes

__all__ = ["ReduceOp", "ReduceProblem"]

LARGEST_LENGTH = 2**40
FEWEST_ROUNDINGS = 64
"""Least number of roundings in the bound of a sum if the caller does not state them (see `ReduceOp.reference`)."""
PIECE = 1 << 20
"""Most elements that are summed without rounding (`math.fsum`). Longer rows are cut into pieces of this length, which
NumPy sums in float64; their error is part of the bound.
"""
_FLOAT64_ERROR = 2.0**-48
IDENTITIES: Mapping[str, float] = {"sum": 0.0, "max": -math.inf, "min": math.inf}
"""Operator -> the result of reducing no elements."""


class ReduceOp:
    """The operation `reduce` (see `gemmlab.ops.op.Op`)."""

    name = "reduce"
    unit = GBS
    limit = LIMITS[GBS]
    extents: tuple[str, ...] = ("n",)
    precisions: tuple[str, ...] = PRECISIONS
    usual_sizes: Mapping[str, str] = {}
    file: str | None = ""
    flags: Mapping[str, tuple[int, ...]] = {"operator": tuple(range(len(OPERATORS)))}
    factors: Mapping[str, str] = {}

    def typed(self, types: Mapping[str, Element]) -> Op:
        """Return the operation itself; `UsageError` for types other than float32."""
        return only_float32(self, types)

    def parse_sizes(self, text: str) -> list[ReduceProblem]:
        """Return sums of the given lengths."""
        return [ReduceProblem(n) for (n,) in parse_sizes(text, 1, LARGEST_LENGTH)]

    def problem_from_json(self, data: Mapping[str, Any]) -> ReduceProblem:
        """Return the problem of JSON values from `ReduceProblem.to_json`.

        Raises `UsageError` for unknown, missing or malformed fields.
        """
        kinds = {field.name: int if field.name == "n" else str for field in fields(ReduceProblem)}
        if unknown := sorted(set(data) - set(kinds)):
            raise UsageError(f"reduce problem: unknown field {unknown[0]!r}")
        for name, value in data.items():
            if type(value) is not kinds[name]:
                raise UsageError(f"reduce problem: {name} = {value!r} is of the wrong kind")
        if "n" not in data:
            raise UsageError("reduce problem: n is missing")
        return ReduceProblem(**data)

    def dot_length(self, problem: ReduceProblem) -> int:
        """Return the length: all elements go into one result."""
        return problem.n

    def in_layouts(self, problem: ReduceProblem, layouts: Sequence[str]) -> list[ReduceProblem]:  # noqa: ARG002
        """Return the problem alone: a row has no layouts."""
        return [problem]

    def flops(self, problem: ReduceProblem) -> int:
        """Return the length: one operation for each element, the first included."""
        return problem.n

    def bytes_moved(self, problem: ReduceProblem) -> int:
        """Return the bytes if each element is read once and the result is written."""
        return FLOAT_BYTES * (problem.n + 1)

    def work(self, problem: ReduceProblem) -> int:
        """Return the number of bytes moved, as the unit is GB/s."""
        return self.bytes_moved(problem)

    def operands(self, problem: ReduceProblem) -> tuple[Operand, ...]:
        """Return `x`, a row of `n` elements, and `out`, one element."""
        return (Operand("x", 1, problem.n, max(1, problem.n), "in"), Operand("out", 1, 1, 1, "out"))

    def scalars(self, problem: ReduceProblem) -> dict[str, Any]:
        """Return the length `n` and the operator's index in `OPERATORS`, as int64."""
        return {"n": np.int64(problem.n), "operator": np.int64(OPERATORS.index(problem.operator))}

    def fill(self, problem: ReduceProblem, rng: np.random.Generator) -> dict[str, Float32Array]:
        """Return data of the kind `problem.contents`, and NaN for the result."""
        return {"x": operand_contents(problem, rng).reshape(1, -1), "out": np.full((1, 1), np.nan, np.float32)}

    def reference(
        self, problem: ReduceProblem, inputs: Mapping[str, Float32Array], roundings: int | None = None,
        precision: str = FLOAT32,  # noqa: ARG002 - nothing is rounded before it is added
    ) -> dict[str, Expected]:  # fmt: skip
        """Return the result in float64, and its bound.

        `roundings` is the largest number of consecutive additions that a term goes through. The error of the sum is
        then at most `roundings * u * (sum of magnitudes)`, u = 2^-24. Without `roundings`, the bound has 64 additions,
        or the square root of the length if that is more: a tree needs the logarithm of the length, sums by threads or
        lanes little more, and one long chain is not acceptable for a long sum. If a partial sum may overflow in some
        order, the bound is infinite, unless the sum certainly overflows, with terms of one sign: then the result is
        infinite in every order.

        The maximum and the minimum are exact, and NaN if any element is. Without elements the result is that in
        `IDENTITIES`.
        """
        x = inputs["x"].reshape(-1)
        if problem.operator != "sum" or not x.size:
            value = IDENTITIES[problem.operator] if not x.size else float(getattr(np, problem.operator)(x))
            return {"out": Expected(np.full((1, 1), value), np.zeros((1, 1)))}
        steps = max(FEWEST_ROUNDINGS, math.isqrt(x.size)) if roundings is None else roundings
        value, bound = _sum(x, steps)
        return {"out": Expected(np.full((1, 1), value), np.full((1, 1), bound))}

    def cases(
        self, layouts: Sequence[str], rng: np.random.Generator, scale: str = "quick"  # noqa: ARG002
    ) -> Iterator[ReduceProblem]:  # fmt: skip
        """Yield lengths at which code may have an edge case, with all operators, and all kinds of contents at a few
        lengths.

        `scale` is `"quick"` or `"full"`; `layouts` is ignored.
        """
        return contract_cases(rng, scale)


def _sum(x: Float32Array, steps: int) -> tuple[float, float]:
    """Return the sum and its bound for `steps` consecutive additions (see `ReduceOp.reference`).

    They are computed piece by piece, because a whole long row in float64 would take much memory.
    """
    sums, magnitudes = [], []
    exact = x.size <= PIECE
    for first in range(0, x.size, PIECE):
        piece = x[first : first + PIECE].astype(np.float64)
        finite = np.isfinite(piece)
        with np.errstate(invalid="ignore"):
            sums.append(math.fsum(piece) if exact and finite.all() else float(piece.sum()))
        magnitudes.append(float(np.abs(piece[finite]).sum()))
    value = math.fsum(sums) if all(map(math.isfinite, sums)) else float(np.sum(sums))
    magnitude = math.fsum(magnitudes)
    overflows = magnitude * (1.0 + steps * UNIT_ROUNDOFF) >= OVERFLOW
    if not math.isfinite(value):
        # If a partial sum may overflow to the opposite infinity, the result may be NaN instead.
        return value, math.inf if overflows and math.isinf(value) else 0.0
    bound = steps * UNIT_ROUNDOFF * magnitude + _FLOAT64_ERROR * magnitude
    if not overflows:
        return value, bound
    certain = abs(value) >= magnitude * (1.0 - 1e-12) and abs(value) - bound > OVERFLOW
    return (math.copysign(math.inf, value), 0.0) if certain else (value, math.inf)
