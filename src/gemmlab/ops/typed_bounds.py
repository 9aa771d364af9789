"""Elementwise bounds of matrix products, which depend on the types in which they are stored and summed.

Operands are generated in their own type, so reading them does not round. A sum of K products in a type with the unit
roundoff u has an error of at most gamma |A||B|, gamma = n u / (1 - n u) (Higham, Accuracy and Stability of Numerical
Algorithms, section 3.1). Here n is 2 K, because tensor cores truncate sums while other arithmetic rounds, and because
for a float64 result the reference itself has an error. If n u is 1 or more, the bound is infinite. Tensor cores
truncate sums of 8-bit floats to 13 bits behind the point (`core/elements.py`); the u of 2^-14 covers that.

Sums of whole numbers are exact in any order if the sum of all magnitudes has no more bits than the type. Then only
multiplications by alpha and beta, their addition and storing the result round.
"""

from __future__ import annotations

import numpy as np

from gemmlab.core.elements import Element, Values
from gemmlab.ops.gemm import ROUNDINGS, float64_product
from gemmlab.ops.gemm_problem import WHOLE, GemmProblem
from gemmlab.ops.op import Expected


def whole_product(a: Values, b: Values) -> Values:
    """Return the product of matrices of whole numbers, exact below 2^53."""
    return a @ b


def exact_sum(magnitude: Values, total: Element) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return a mask: True where a sum of whole numbers is exact in the type `total`.

    `magnitude` has the sums of the terms' magnitudes.
    """
    return np.asarray(magnitude <= (np.inf if total.whole else 2.0**total.bits))


def product_bound(
    problem: GemmProblem, a: Values, b: Values, added: Values, total: Element, result: Element, roundings: int | None
) -> Expected:
    """Return alpha * a @ b + added in float64 with its bound, for products summed in `total` and stored in `result`.

    `a` and `b` are op(A) and op(B), `added` is beta * C. `roundings` is the largest number of consecutive additions
    that a term goes through, if the order of summation is known; by default K. NaN and infinities are those of IEEE
    arithmetic. The bound is infinite if a sum may overflow in some order, and where the value is infinite but the type
    `result` may have its largest number instead.
    """
    p, u = problem, max(total.roundoff, result.roundoff)
    with np.errstate(invalid="ignore", over="ignore"):
        if p.without_product:
            # Adding nothing, or copying nothing, is exact; beta * C rounds when it is multiplied and stored.
            return Expected(added, np.where(np.isfinite(added), 2 * u * np.abs(added), 0.0))
        product, magnitude = float64_product(a, b), float64_product(np.abs(a), np.abs(b))
        values = p.alpha * product + added
        spread = np.multiply(_gamma(total, p.k if roundings is None else roundings), magnitude)
        if p.contents == WHOLE:
            spread = np.where(exact_sum(magnitude, total), 0.0, spread)
        # Storing a product rounds once more; factors and an addition round, too.
        steps = 1 if (p.alpha, p.beta) == (1.0, 0.0) else ROUNDINGS
        scaled = abs(p.alpha) * (magnitude + spread) + np.abs(added)
        least = 0.5 * (total.smallest * p.k + result.smallest * steps) * max(1.0, abs(p.alpha))
        bound = abs(p.alpha) * spread + steps * u * scaled + least
        risky = np.isnan(bound) | (np.maximum(magnitude + spread, scaled) >= min(total.overflow, result.overflow))
        bound = np.where(np.isfinite(values), np.where(risky, np.inf, bound), 0.0)
        if result.saturates:
            bound[np.isinf(values)] = np.inf
    return Expected(values, bound)


def _gamma(total: Element, additions: int) -> float:
    spread = 2 * additions * total.roundoff
    return spread / (1.0 - spread) if spread < 1.0 else float("inf")
