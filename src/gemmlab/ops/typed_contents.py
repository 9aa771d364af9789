"""Random contents for matrix products on operands of other types than float32.

Besides the kinds of float32 products (without `huge`) there are whole numbers so small that every sum is exact in the
result's type, in any order (`WHOLE`). With them one wrong term shows even in sums of few bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from gemmlab.core.elements import E4M3, E5M2, FLOAT16, FLOAT32, FLOAT64, Element, Values
from gemmlab.ops.gemm_cases import put_specials
from gemmlab.ops.gemm_problem import CONTENTS as OF_FLOAT32
from gemmlab.ops.gemm_problem import WHOLE, GemmProblem

CONTENTS = OF_FLOAT32[:4]
"""The kinds of contents besides `WHOLE`, the default first."""
_LARGEST_WHOLE = 1 << 15
_MOST_STEPS = 4
"""Largest magnitude of the numbers in contents `WHOLE`."""
_WIDE = {FLOAT16.name: 4, E4M3.name: 2, E5M2.name: 4}
_USUAL_WIDE = 30
"""Contents `wide` are multiplied by random powers of two from minus to plus this exponent; `_WIDE` has exceptions."""
_TINY = {
    FLOAT16.name: (2.0**-20, 2.0**10), FLOAT64.name: (1e-310, 1e307), E4M3.name: (2.0**-6, 2.0**5),
    E5M2.name: (2.0**-14, 2.0**10),
}  # fmt: skip
_USUAL_TINY = (1e-39, 1e38)
"""Factors for contents `subnormal`: one that makes a's numbers subnormal, and one by which b compensates for it.
`_TINY` has exceptions.
"""


def contents(
    problem: GemmProblem, types: Mapping[str, Element], total: Element, rng: np.random.Generator
) -> dict[str, Values]:
    """Return new random a, b, c in their stored shapes (rows, cols), of the kind `problem.contents`, in float64.

    They are not yet rounded to `types`, the operands' types by name. `total` is the type of the sums.
    """
    p = problem
    shapes = {"a": (p.m, p.k), "b": (p.k, p.n), "c": (p.m, p.n)}
    if p.contents == WHOLE:
        steps, share = _exact(p.k, min(types["c"], total, key=lambda one: one.bits or FLOAT32.bits))
        a, b, c = (_steps(rng, shape, types[name], steps, share) for name, shape in shapes.items())
    else:
        a, b, c = (_uniform(rng, shape, types[name]) for name, shape in shapes.items())
    match p.contents:
        case "wide":
            spread = {name: _WIDE.get(one.name, _USUAL_WIDE) for name, one in types.items()}
            a, b, c = (
                np.ldexp(array, rng.integers(-spread[name], spread[name] + 1, array.shape))
                for name, array in (("a", a), ("b", b), ("c", c))
            )
        case "special":
            put_specials(problem, a, b, c, rng)
        case "subnormal":
            a *= _TINY.get(types["a"].name, _USUAL_TINY)[0]
            b *= _TINY.get(types["b"].name, _USUAL_TINY)[1]
    stored = {"a": a.T if p.trans_a else a, "b": b.T if p.trans_b else b, "c": c}
    return {name: np.ascontiguousarray(array) for name, array in stored.items()}


def _uniform(rng: np.random.Generator, shape: tuple[int, int], kind: Element) -> Values:
    if kind.whole:
        limits = np.iinfo(np.dtype(kind.name))
        low, high = max(int(limits.min), -_LARGEST_WHOLE), min(int(limits.max), _LARGEST_WHOLE)
        return rng.integers(low, high, shape, endpoint=True).astype(np.float64)
    return rng.random(shape) * 2.0 - 1.0


def _exact(terms: int, result: Element) -> tuple[int, float]:
    """Return the largest magnitude and the share of nonzero numbers with which sums of `terms` products stay exact.

    `result` is the type of the sums or that of the results, whichever has fewer bits.
    """
    # A quarter of the type's range leaves room for chance, for the factors and for the addend.
    most = 2.0 ** (min(result.bits or FLOAT32.bits, FLOAT32.bits) - 2) / max(1, terms)
    steps = min(max(1, math.isqrt(int(most))), _MOST_STEPS)
    return steps, min(1.0, math.sqrt(most) / steps)


def _steps(rng: np.random.Generator, shape: tuple[int, int], kind: Element, steps: int, share: float) -> Values:
    lowest = 0 if kind.whole and np.iinfo(np.dtype(kind.name)).min == 0 else -steps
    values = rng.integers(lowest, steps, shape, endpoint=True).astype(np.float64)
    return values if share >= 1.0 else np.where(rng.random(shape) < share, values, 0.0)
