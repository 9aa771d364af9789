"""A Gaussian process over the logarithms of times, to find configurations that may be faster than the best one.

Matérn 5/2 with a length for each parameter, chosen by marginal likelihood; the mean is a straight line in the logarithm
of the forecast. Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), algorithm 2.1; expected
improvement after Jones, Schonlau and Welch (1998). Configurations of a batch are chosen one by one, each as if the
previous ones had been measured with their expected times (kriging believer, Ginsbourger, Le Riche and Carraro 2010).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import erf

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]
LENGTHS = (0.35, 0.7, 1.4, 2.8)
NOISE = 1e-3
"""Variance of the error of a measured logarithm, as a fraction of the variance of all logarithms."""
MOST_POINTS = 160
"""The most measured points that are used: the fastest, and others evenly chosen."""
_FOR_LENGTHS = 64
"""The most points to which lengths are fitted."""
_SQRT5 = 5.0**0.5


@dataclass(frozen=True, slots=True)
class Posterior:
    """Mean and variance of the logarithm of every configuration's time, in units of the measured logarithms'
    deviation.
    """

    lengths: Float64Array
    points: Float64Array
    """The configurations, scaled by the lengths."""
    mean: Float64Array
    variance: Float64Array
    half: Float64Array
    """The solved cross-covariances; products of its columns give the covariance of two configurations."""
    best: float

    def pick(self, count: int, without: Collection[int]) -> list[int]:
        """Return up to `count` configurations with the greatest expected improvements, in that order."""
        variance, chosen, updates = self.variance.copy(), list[int](), list[Float64Array]()
        free = np.ones(len(self.mean), np.bool_)
        free[list(without)] = False
        while free.any() and len(chosen) < count:
            gain = np.where(free, _improvement(self.best - self.mean, np.sqrt(np.maximum(variance, 1e-12))), -1.0)
            place = int(np.argmax(gain))
            chosen.append(place)
            free[place] = False
            covariance = _matern(self.points[[place]], self.points)[0] - self.half[:, place] @ self.half
            for update in updates:
                covariance = covariance - update[place] * update
            updates.append(covariance / np.sqrt(max(variance[place], 1e-12) + NOISE))
            variance = variance - updates[-1] ** 2
        return chosen


def posterior(
    points: Float64Array, forecast: Float64Array, places: Sequence[int], us: Sequence[float],
    lengths: Float64Array | None = None,
) -> Posterior:  # fmt: skip
    """Fit measured times `us` of the configurations `places`; `points` and `forecast` have a row for each one.

    `forecast` is in microseconds of any scale. At least two times are needed. `lengths` are those of an earlier fit, to
    be used again.
    """
    rows, logs = _representative(np.asarray(places, np.intp), np.log(np.asarray(us, np.float64)), MOST_POINTS)
    trend = np.column_stack([np.ones(len(points)), np.log(forecast)])
    if np.ptp(trend[rows, 1]) < 1e-9:
        trend = trend[:, :1]
    weights = np.linalg.lstsq(trend[rows], logs, rcond=None)[0]
    if len(weights) > 1 and not 0.0 <= weights[1] <= 2.0:
        # A forecast that contradicts the measurements is worse than none.
        trend, weights = trend[:, :1], np.array([logs.mean()])
    line = trend @ weights
    rest = logs - line[rows]
    scale = float(max(rest.std(), 1e-3))
    if lengths is None:
        few, values = _representative(rows, rest / scale, _FOR_LENGTHS)
        lengths = _lengths(points[few], values)
    scaled = points / lengths
    lower = np.linalg.cholesky(_covariance(scaled[rows]))
    half = np.linalg.solve(lower, _matern(scaled[rows], scaled))
    mean = half.T @ np.linalg.solve(lower, rest / scale) + line / scale
    return Posterior(
        lengths, scaled, mean, np.maximum(1.0 - (half**2).sum(axis=0), 0.0), half, float(logs.min() / scale)
    )


def _representative(
    rows: npt.NDArray[np.intp], logs: Float64Array, most: int
) -> tuple[npt.NDArray[np.intp], Float64Array]:
    if len(rows) <= most:
        return rows, logs
    order = np.argsort(logs, kind="stable")
    half = most // 2
    others = order[half:][np.linspace(0, len(order) - half - 1, half).astype(np.intp)]
    chosen = np.concatenate([order[:half], others])
    return rows[chosen], logs[chosen]


def _lengths(points: Float64Array, values: Float64Array) -> Float64Array:
    """Return the length of each axis: first the best common one, then each is made shorter or longer if that is
    likelier.
    """
    axes = points.shape[1]
    same = max(LENGTHS, key=lambda each: _likelihood(points / each, values))
    lengths: Float64Array = np.full(axes, same, np.float64)
    best = _likelihood(points / lengths, values)
    for axis in range(axes):
        for factor in (0.5, 2.0, 4.0):
            other = lengths.copy()
            other[axis] *= factor
            if (found := _likelihood(points / other, values)) > best:
                lengths, best = other, found
    return lengths


def _likelihood(points: Float64Array, values: Float64Array) -> float:
    lower = np.linalg.cholesky(_covariance(points))
    solved = np.linalg.solve(lower, values)
    return float(-0.5 * solved @ solved - np.log(np.diag(lower)).sum())


def _covariance(points: Float64Array) -> Float64Array:
    return _matern(points, points) + NOISE * np.eye(len(points))


def _matern(left: Float64Array, right: Float64Array) -> Float64Array:
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None, :] - 2.0 * left @ right.T
    far = _SQRT5 * np.sqrt(np.maximum(squares, 0.0))
    found: Float64Array = (1.0 + far + far**2 / 3.0) * np.exp(-far)
    return found


def _improvement(gain: Float64Array, deviation: Float64Array) -> Float64Array:
    ratio = gain / deviation
    below = 0.5 * (1.0 + _erf(ratio / 2.0**0.5))
    density = np.exp(-0.5 * ratio**2) / (2.0 * np.pi) ** 0.5
    found: Float64Array = deviation * (ratio * below + density)
    return found


_erf = np.vectorize(erf, otypes=[np.float64])
