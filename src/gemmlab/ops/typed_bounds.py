"""Elementwise bounds of matrix products by the types in which they are stored and summed.

Operands are generated in their own type, so reading them does not round. A sum of K products in a type with the unit
roundoff u has an error of at most gamma |A||B|, gamma = n u / (1 - n u) (Higham, Accuracy and Stability of Numerical
Algorithms, section 3.1), for n = 2 K: tensor cores truncate sums that other arithmetic rounds, and for a float64 result
the reference itself has an error. If n u is 1 or more, there is no bound. The sums of 8-bit floats in tensor cores are
truncated to 13 bits behind the point (`core/elements.py`); their u of 2^-14 covers that.

Sums of whole numbers are exact in any order if the sum of all magnitudes has no more bits than the type: then only the
factors and the result are rounded.
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
    """Return a mask of the sums of whole numbers that are exact in the type `total`; `magnitude` has the sums of their
    magnitudes.
    """
    return np.asarray(magnitude <= (np.inf if total.whole else 2.0**total.bits))


def product_bound(
    problem: GemmProblem, a: Values, b: Values, added: Values, total: Element, result: Element, roundings: int | None
) -> Expected:
    """Return alpha * a @ b + added and its bound, for products added up in the type `total`, and a result of another.

    `roundings` is the largest number of consecutive additions that a term goes through, if the order of summation is
    known. NaN and infinities are those of IEEE arithmetic. The bound is infinite if a sum may overflow in some order,
    and for infinities that the result's type may replace by its largest number.
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
