"""The matrix product of operands of other types than float32: float64, 16-bit and 8-bit floats, whole numbers,
mixtures.

The types are those of the stored numbers. The precision names the type in which products are summed, which determines
the bound (`ops/typed_bounds.py`). Its default depends on the types: int32 (or int64 if C is of it) if A and B are
whole numbers, the type of tensor cores (`E8M13`) if both are 8-bit floats; else the type of C, or float32 if C has
8-bit floats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.elements import BFLOAT16, E8M13, FLOAT16, FLOAT32, FLOAT64, Element, element
from gemmlab.core.errors import UsageError
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import WHOLE, GemmProblem
from gemmlab.ops.op import Expected, Op, Operand
from gemmlab.ops.typed_bounds import product_bound, whole_product
from gemmlab.ops.typed_contents import CONTENTS, contents

OPERANDS = ("a", "b", "c")
_SUMS = (FLOAT64, FLOAT32, FLOAT16, BFLOAT16)
"""Types in which products of floats may be summed, whatever the operands' types are."""
_WHOLE_SUM = element("int32")


class TypedGemmOp(GemmOp):
    """The operation `gemm` for operands of the types `a`, `b` and `c` (see `gemmlab.ops.op.Op`)."""

    limit = ""

    def __init__(self, a: Element, b: Element, c: Element) -> None:
        if c.whole and not (a.whole and b.whole):
            raise UsageError(f"C is of {c.name}, but A is of {a.name} and B of {b.name}: their products are not whole")
        self._types = {"a": a, "b": b, "c": c}
        self._whole = a.whole and b.whole
        self.name = type_name(self._types)
        first = (c if c.whole and c.nbytes > 4 else _WHOLE_SUM) if self._whole else FLOAT32 if c.fraction else c
        sums = (first,) if self._whole else (first, *_SUMS)
        if a.fraction and b.fraction:
            sums = (E8M13, *sums)
        self._sums = {one.name: one for one in sums}
        self.precisions = tuple(self._sums)
        self.usual_sizes = {"bench": "512,1024,2048,4096", "count": "256", "trace": "256x256x64"}

    def typed(self, types: Mapping[str, Element]) -> Op:
        """Return the operation for operands of these types; those without a type are float32."""
        return typed_gemm(types)

    def parse_sizes(self, text: str) -> list[GemmProblem]:
        """Return products with alpha 1 and beta 0 from sizes as in `ops/gemm_sizes.py`. `UsageError` for a batch.

        If K is too large for a useful bound, the contents are whole numbers, whose sums are exact.
        """
        return [self._bounded(problem) for problem in super().parse_sizes(text)]

    def bytes_moved(self, problem: GemmProblem) -> int:
        """Return the bytes if each operand is moved once, as for float32, by the types' sizes."""
        sizes = {name: one.nbytes for name, one in self._types.items()}
        read = 0 if problem.without_product else problem.k * (problem.m * sizes["a"] + problem.n * sizes["b"])
        return read + problem.m * problem.n * sizes["c"] * (2 if problem.beta != 0.0 else 1)

    def operands(self, problem: GemmProblem) -> tuple[Operand, ...]:
        """Return the operands a, b, c in their stored shapes and types."""
        a, b, c = (replace(one, element=self._types[one.name]) for one in super().operands(problem))
        return a, b, c

    def fill(self, problem: GemmProblem, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
        """Return data of the kind `problem.contents` in the operands' types. Operands that must not be read hold
        `Element.filler`, such as NaN.
        """
        values = contents(problem, self._types, self._sums[self.precisions[0]], rng)
        found = {name: self._types[name].stored(array) for name, array in values.items()}
        ignored = [*("ab" if problem.without_product else ""), *("c" if problem.beta == 0.0 else "")]
        return {name: self._types[name].filler(array.shape) if name in ignored else array
                for name, array in found.items()}  # fmt: skip

    def reference(
        self, problem: GemmProblem, inputs: Mapping[str, npt.NDArray[Any]], roundings: int | None = None,
        precision: str = "",
    ) -> dict[str, Expected]:  # fmt: skip
        """Return C in float64 with its elementwise bound (`product_bound`).

        If all operands are whole numbers, C is exact, with bound 0, and wraps around as in its type.
        """
        p, kinds = problem, self._types
        a, b, c = (kinds[name].widen(inputs[name]) for name in OPERANDS)
        a, b = (a.T if p.trans_a else a), (b.T if p.trans_b else b)
        added = p.beta * c if p.beta != 0.0 else np.zeros((p.m, p.n))
        if self._whole and kinds["c"].whole:
            total = np.zeros((p.m, p.n)) if p.without_product else p.alpha * whole_product(a, b)
            wrapped = kinds["c"].stored(total + added)
            return {"c": Expected(kinds["c"].widen(wrapped), np.zeros((p.m, p.n)))}
        sums = self._sums.get(precision, self._sums[self.precisions[0]])
        return {"c": product_bound(p, a, b, added, sums, kinds["c"], roundings)}

    def cases(self, layouts: Sequence[str], rng: np.random.Generator, scale: str = "quick") -> Iterator[GemmProblem]:
        """Yield the cases of the float32 product that these types can have.

        About every other one of those with uniform contents gets whole numbers instead, with which every wrong term
        shows. alpha and beta are changed to numbers of few bits; if C is whole, to whole ones.
        """
        found: dict[GemmProblem, None] = {}
        for index, problem in enumerate(super().cases(layouts, rng, scale)):
            known = self._own_case(problem, index)
            if known is not None:
                found[known] = None
        yield from found

    def _own_case(self, problem: GemmProblem, index: int) -> GemmProblem | None:
        whole = self._types["c"].whole
        if problem.contents not in (CONTENTS[:1] if any(one.whole for one in self._types.values()) else CONTENTS):
            return None
        factors: dict[str, Any] = {}
        for name in ("alpha", "beta"):
            value = getattr(problem, name)
            if whole and not np.isfinite(value):
                return None
            # A kernel may take alpha and beta in the operands' type, so they have few bits.
            factors[name] = float(np.round(2 * value)) if whole else _few_bits(value)
        known = replace(problem, **factors)
        return replace(known, contents=WHOLE) if index % 2 and known.contents == CONTENTS[0] else self._bounded(known)

    def _bounded(self, problem: GemmProblem) -> GemmProblem:
        least = max(self._types["c"].roundoff, self._sums[self.precisions[0]].roundoff)
        short = self._whole or 16 * problem.k * least < 1.0
        return problem if short or problem.contents != CONTENTS[0] else replace(problem, contents=WHOLE)


def typed_gemm(types: Mapping[str, Element]) -> Op:
    """Return the operation `gemm` for operands of these types; those without a type are float32.

    Raises `UsageError` if C has whole numbers, but A or B has not.
    """
    a, b, c = (types.get(name, FLOAT32) for name in OPERANDS)
    return GemmOp() if a == b == c == FLOAT32 else TypedGemmOp(a, b, c)


def type_name(types: Mapping[str, Element]) -> str:
    """Return the name of `gemm` for operands of these types: `gemm:float16`, or `gemm:int8,int8,int32`."""
    names = [types[name].name for name in OPERANDS]
    return f"gemm:{names[0] if len(set(names)) == 1 else ','.join(names)}"


def _few_bits(value: float) -> float:
    """Return a number rounded to the bits of bfloat16."""
    return float(BFLOAT16.widen(BFLOAT16.stored(np.array(value))))
