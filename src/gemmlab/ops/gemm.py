"""C = alpha * op(A) * op(B) + beta * C in float32, row-major, any shape, with leading dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from typing import Any

import numpy as np

from gemmlab.core.elements import Element
from gemmlab.core.errors import UsageError
from gemmlab.core.hardware import usable_cpus
from gemmlab.core.precision import (
    BF16X3,
    BF16X3_ROUNDOFF,
    FLOAT32,
    FLOAT_BYTES,
    OVERFLOW,
    PARTS,
    PRECISIONS,
    SMALLEST_NORMAL,
    TF32,
    TF32_HALF_SUBNORMAL,
    TF32_OVERFLOW,
    TF32_ROUNDOFF,
    UNIT_ROUNDOFF,
)
from gemmlab.ops.gemm_cases import contract_cases, operand_contents
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.ops.gemm_sizes import parse_products
from gemmlab.ops.op import GFLOPS, LIMITS, Expected, Float32Array, Float64Array, Op, Operand

__all__ = ["GemmOp", "GemmProblem"]

PART_ROUNDINGS = 8
"""Roundings added to the bound because parts of operands lack some bits, and some products of parts are left out."""
_ROUNDINGS_OF_PARTS = {**dict.fromkeys(PARTS, PART_ROUNDINGS), BF16X3: round(BF16X3_ROUNDOFF / UNIT_ROUNDOFF)}
"""Precision -> roundings added to the bound for a product of parts."""
_BLOCK = 1 << 15
"""Elements of a result that are bounded at a time; with their temporaries they take a few MiB."""
_FEWEST_BLOCKS = 32
"""Fewer blocks than this are bounded without threads."""
ROUNDINGS = 4
"""The constant c of the bound (`GemmOp.reference`): roundings besides the K of the dot product. They are those of
alpha, beta and the addition, and one in reserve.
"""

SHORT_SUMS = 1280
"""The largest K for which kernels keep sums in tensor cores short. Tensor cores truncate, so long sums of positive
terms have errors of some 9 units of 2^-24. Those of a chain of float32 multiply-adds grow with K, to as much at about
1,100.
"""


class GemmOp:
    """The operation `gemm` (see `gemmlab.ops.op.Op`). `product` computes the products of references in place of
    `float64_product`.
    """

    def __init__(self, product: Callable[[Float64Array, Float64Array], Float64Array] | None = None) -> None:
        self._product = product or float64_product

    name = "gemm"
    unit = GFLOPS
    limit = LIMITS[GFLOPS]
    extents: tuple[str, ...] = ("m", "n", "k")
    precisions: tuple[str, ...] = PRECISIONS
    usual_sizes: Mapping[str, str] = {}
    file: str | None = ""
    flags: Mapping[str, tuple[int, ...]] = {"trans_a": (0, 1), "trans_b": (0, 1), "short_sums": (0, 1)}
    factors: Mapping[str, str] = {"a": "alpha", "b": "alpha", "c": "beta"}

    def typed(self, types: Mapping[str, Element]) -> Op:
        """Return the operation for operands of these types; those without a type are float32."""
        from gemmlab.ops.typed_gemm import typed_gemm

        return typed_gemm(types)

    def parse_sizes(self, text: str) -> list[GemmProblem]:
        """Return products with alpha 1 and beta 0 from sizes as in `ops/gemm_sizes.py`. `UsageError` for a batch."""
        products = parse_products(text)
        for one in products:
            if one.batch > 1:
                raise UsageError(f"size {text!r}: a batch is for the operation batch; write {one.problem.label} here")
        return [one.problem for one in products]

    def problem_from_json(self, data: Mapping[str, Any]) -> GemmProblem:
        """Return the problem of JSON values from `GemmProblem.to_json`.

        Raises `UsageError` for unknown, missing or malformed fields.
        """
        known = {field.name for field in fields(GemmProblem)}
        if unknown := sorted(set(data) - known):
            raise UsageError(f"gemm problem: unknown field {unknown[0]!r}")
        values: dict[str, Any] = {}
        for name, value in data.items():
            if name in ("alpha", "beta"):
                fits = isinstance(value, (int, float)) or value in ("nan", "inf", "-inf")
                values[name] = float(value) if fits else value
            else:
                kind = bool if name.startswith("trans") else str if name == "contents" else int
                fits = type(value) is kind
                values[name] = value
            if not fits:
                raise UsageError(f"gemm problem: {name} = {value!r} is of the wrong kind")
        if missing := [name for name in ("m", "n", "k") if name not in values]:
            raise UsageError(f"gemm problem: {missing[0]} is missing")
        return GemmProblem(**values)

    def dot_length(self, problem: GemmProblem) -> int:
        """Return K, the number of terms of each result."""
        return problem.k

    def in_layouts(self, problem: GemmProblem, layouts: Sequence[str]) -> list[GemmProblem]:
        """Return the same product once in each of `layouts`, with the smallest leading dimensions."""
        return [problem.with_layout(layout) for layout in layouts]

    def flops(self, problem: GemmProblem) -> int:
        """Return 2MNK, the usual count for GFLOP/s."""
        return 2 * problem.m * problem.n * problem.k

    def bytes_moved(self, problem: GemmProblem) -> int:
        """Return the bytes if each operand is moved once: 4(MK + KN) and, if beta is not 0, 4MN read; 4MN written.

        A and B are not read if alpha or K is 0.
        """
        result = problem.m * problem.n
        read = 0 if problem.without_product else problem.m * problem.k + problem.k * problem.n
        return FLOAT_BYTES * (read + result * (2 if problem.beta != 0.0 else 1))

    def work(self, problem: GemmProblem) -> int:
        """Return the number of operations, as `flops`."""
        return self.flops(problem)

    def operands(self, problem: GemmProblem) -> tuple[Operand, ...]:
        """Return the operands a, b, c in their stored shapes; c is an input, too, if beta is not 0."""
        p = problem
        return (
            Operand("a", *((p.k, p.m) if p.trans_a else (p.m, p.k)), p.lda, "in"),
            Operand("b", *((p.n, p.k) if p.trans_b else (p.k, p.n)), p.ldb, "in"),
            Operand("c", p.m, p.n, p.ldc, "out" if p.beta == 0.0 else "inout"),
        )

    def scalars(self, problem: GemmProblem) -> dict[str, Any]:
        """Return extents, leading dimensions and flags as int64, alpha and beta as float32.

        The flag `short_sums` is 1 if K is at most `SHORT_SUMS`.
        """
        names = ("m", "n", "k", "lda", "ldb", "ldc", "trans_a", "trans_b")
        whole: dict[str, Any] = {name: np.int64(getattr(problem, name)) for name in names}
        return whole | {
            "short_sums": np.int64(problem.k <= SHORT_SUMS), "alpha": np.float32(problem.alpha),
            "beta": np.float32(problem.beta),
        }  # fmt: skip

    def fill(self, problem: GemmProblem, rng: np.random.Generator) -> dict[str, Float32Array]:
        """Return data of the kind `problem.contents`, and NaN in every operand that must not be read."""
        arrays = operand_contents(problem, rng)
        if problem.without_product:
            arrays["a"].fill(np.nan)
            arrays["b"].fill(np.nan)
        if problem.beta == 0.0:
            arrays["c"].fill(np.nan)
        return arrays

    def reference(
        self, problem: GemmProblem, inputs: Mapping[str, Float32Array], roundings: int | None = None,
        precision: str = FLOAT32,
    ) -> dict[str, Expected]:  # fmt: skip
        """Return C in float64, and its elementwise bound.

        The bound is (K + c) u (|alpha| |A||B| + |beta C|) + (K + c) tiny max(1, |alpha|), where u is 2^-24, tiny is the
        smallest normal number and c is `ROUNDINGS`; `roundings`, if it is given, replaces K. Precisions with parts have
        more roundings. If A and B are not read, the bound is c (u |beta C| + tiny), and 0 without C. For TF32, |alpha|
        times the largest change of the product by rounding the inputs is added, and K is doubled, because a tensor core
        truncates its sums, while float32 arithmetic rounds.

        NaN and infinities are those of IEEE arithmetic, with bound 0. If a partial sum may overflow in some order of
        evaluation, the bound is infinite, unless the result certainly overflows, with terms of one sign: then it is
        infinite in every order.
        """
        p = problem
        a = (inputs["a"].T if p.trans_a else inputs["a"]).astype(np.float64)
        b = (inputs["b"].T if p.trans_b else inputs["b"]).astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            added = p.beta * inputs["c"].astype(np.float64) if p.beta != 0.0 else np.zeros((p.m, p.n))
            if p.without_product:
                steps = ROUNDINGS if p.beta != 0.0 else 0
                bound = steps * (UNIT_ROUNDOFF * np.abs(added) + SMALLEST_NORMAL)
                return {"c": Expected(added, np.where(np.isfinite(added), bound, 0.0))}
            product, magnitude = self._product(a, b), self._product(np.abs(a), np.abs(b))
            moved = _moved(np.abs(a), np.abs(b), magnitude) if precision == TF32 else None
        steps = (p.k if roundings is None else roundings) * (2 if precision == TF32 else 1) + ROUNDINGS
        steps += _ROUNDINGS_OF_PARTS.get(precision, 0)
        # NumPy releases the interpreter lock while it computes, and a block's temporaries stay in a core's cache.
        values, bound = np.empty((p.m, p.n)), np.empty((p.m, p.n))
        height = max(1, _BLOCK // max(1, p.n))

        def block(start: int) -> None:
            rows = slice(start, start + height)
            change = None if moved is None else moved[rows]
            values[rows], bound[rows] = _bounded(p.alpha, steps, product[rows], magnitude[rows], change, added[rows])

        starts = range(0, p.m, height)
        if len(starts) < _FEWEST_BLOCKS:
            for start in starts:
                block(start)
        else:
            with ThreadPoolExecutor(len(usable_cpus())) as pool:
                list(pool.map(block, starts))
        return {"c": Expected(values, bound)}

    def cases(self, layouts: Sequence[str], rng: np.random.Generator, scale: str = "quick") -> Iterator[GemmProblem]:
        """Yield problems that cover the whole contract, in each layout.

        `scale` is `"quick"`, which a naive loop computes in a second or two, or `"full"`.
        """
        return contract_cases(layouts, rng, scale)


def _bounded(
    alpha: float, steps: int, product: Float64Array, magnitude: Float64Array, moved: Float64Array | None,
    added: Float64Array,
) -> tuple[Float64Array, Float64Array]:  # fmt: skip
    """Return alpha A B + beta C and its bound (`GemmOp.reference`) from A B, |A||B| and beta C.

    `steps` is the number of roundings, and `moved` the largest change of A B by rounding the inputs.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        values = alpha * product + added
        magnitude = magnitude if moved is None else magnitude + moved
        scaled = abs(alpha) * magnitude + np.abs(added)
        bound = steps * (UNIT_ROUNDOFF * scaled + SMALLEST_NORMAL * max(1.0, abs(alpha)))
        if moved is not None:
            bound += abs(alpha) * moved
        finite = np.isfinite(values)
        bound = np.where(finite, bound, 0.0)
        risky = finite & (np.maximum(magnitude, scaled) * (1.0 + steps * UNIT_ROUNDOFF) >= OVERFLOW)
        if risky.any():
            one_sign = np.abs(product) >= magnitude * (1.0 - 1e-12)
            certain = risky & one_sign & (np.abs(values) - bound > OVERFLOW) & (np.abs(added) < OVERFLOW)
            values = np.where(certain, np.copysign(np.inf, values), values)
            bound = np.where(risky, np.where(certain, 0.0, np.inf), bound)
    return values, bound


def _moved(a: Float64Array, b: Float64Array, product: Float64Array) -> Float64Array:
    """Return a bound of the change of A B by rounding A and B to TF32: |dA| |B| + |A| |dB| + |dA| |dB|.

    `a`, `b` and `product` are |A|, |B| and |A| |B|. As |dA| is at most u |A| + t, u for normal and t for subnormal
    numbers, only `product` and sums of rows and columns are needed. If an element rounds to infinity, its row or column
    of the bound is infinite.
    """
    u, t = TF32_ROUNDOFF, TF32_HALF_SUBNORMAL
    lines = a.sum(axis=1)[:, np.newaxis] + b.sum(axis=0)[np.newaxis, :]
    moved: Float64Array = (2 * u + u * u) * product + (1 + u) * t * lines + a.shape[1] * t * t
    over_a, over_b = ((x >= TF32_OVERFLOW) & (x < np.inf) for x in (a, b))
    moved[over_a.any(axis=1), :] = np.inf
    moved[:, over_b.any(axis=0)] = np.inf
    return moved


def float64_product(a: Float64Array, b: Float64Array) -> Float64Array:
    """Return a @ b. NaN and infinities are those of a sum of all products, zeros times infinity included."""
    if np.isfinite(a).all() and np.isfinite(b).all():
        return a @ b
    # A BLAS may skip zeros, and 0 * Inf must be NaN: rank-1 updates skip nothing.
    total = np.zeros((a.shape[0], b.shape[1]))
    for index in range(a.shape[1]):
        total += np.multiply.outer(a[:, index], b[index])
    return total
