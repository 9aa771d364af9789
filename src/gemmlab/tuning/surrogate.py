"""A Gaussian process over the logarithms of times, to find configurations that may be faster than the best one.

The mean of the process is a straight line in the forecast's logarithm, with slope 1 before anything is measured. Its
covariance is a Matérn 5/2 function with a correlation length for each axis (parameter); the lengths are those of the
greatest posterior probability among a few. Sources: Rasmussen and Williams, Gaussian Processes for Machine Learning
(2006), algorithm 2.1; expected improvement after Jones, Schonlau and Welch (1998). Configurations are chosen one by
one, each as if those chosen before it, and those that are still being compiled, had been measured with their expected
times (kriging believer, Ginsbourger, Le Riche and Carraro 2010).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import erf

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]
USUAL_LENGTH = 0.7
"""The correlation length of an axis before it is fitted; an axis goes from 0 to 1."""
_LENGTH_DEVIATION = 0.7
"""Prior standard deviation of a length's natural logarithm: a factor of 2."""
_LENGTH_FACTORS = (0.5, 2.0, 4.0)
_FEWEST_FOR_LENGTHS = 8
NOISE = 1e-3
"""Variance of the error of a measured time's logarithm, as a fraction of the prior variance of the process."""
DEVIATION = 0.1
"""Prior standard deviation of a time's natural logarithm from the line of the forecast."""
_DEVIATION_WEIGHT = 8.0
"""Weight of the prior deviation: it counts as this many measurements."""
_SLOPE_WEIGHT = 2.0
"""Weight of the prior slope of 1: it counts as measurements whose forecasts' logarithms have this sum of squares."""
MOST_POINTS = 160
"""The most measured configurations that are used. Of more, half are the fastest, and half are evenly spaced by rank
among the others."""
_FOR_LENGTHS = 64
"""The most measured configurations to which lengths are fitted."""
_SQRT5 = 5.0**0.5


@dataclass(frozen=True, slots=True)
class Posterior:
    """Mean and variance of the logarithm of every configuration's time, in units of the process's deviation."""

    lengths: Float64Array
    """The correlation length of each axis."""
    points: Float64Array
    """The coordinates of the configurations, divided by the lengths."""
    mean: Float64Array
    variance: Float64Array
    half: Float64Array
    """A column for each configuration. The product of two columns is what the measurements take off the prior
    covariance of the two configurations.
    """
    best: float
    """The least measured logarithm, in the same units; infinite before the first measurement."""

    def pick(self, count: int, pending: Sequence[int], without: Collection[int]) -> list[int]:
        """Return the numbers of up to `count` configurations, the one with the greatest expected improvement first.

        Configurations in `pending` count as measured with their expected times; those in `without` are not returned.
        Before the first measurement the order is by the mean minus the deviation, the least first.
        """
        variance, chosen, updates = self.variance.copy(), list[int](), list[Float64Array]()
        best = min([self.best, *self.mean[list(pending)]])
        free = np.ones(len(self.mean), np.bool_)
        free[list(without)] = False

        def believe(place: int) -> None:
            nonlocal variance
            covariance = _matern(self.points[[place]], self.points)[0] - self.half[:, place] @ self.half
            for update in updates:
                covariance = covariance - update[place] * update
            updates.append(covariance / np.sqrt(max(variance[place], 1e-12) + NOISE))
            variance = np.maximum(variance - updates[-1] ** 2, 1e-12)

        for place in pending:
            believe(place)
        while free.any() and len(chosen) < count:
            deviation = np.sqrt(variance)
            gain = deviation - self.mean if np.isinf(self.best) else _improvement(best - self.mean, deviation)
            place = int(np.argmax(np.where(free, gain, -np.inf)))
            chosen.append(place)
            free[place] = False
            best = min(best, float(self.mean[place]))
            believe(place)
        return chosen


def prior(points: Float64Array, forecast: Float64Array) -> Posterior:
    """Return the Gaussian process before the first measurement.

    `points` has the coordinates of each configuration (`Space.points`). `forecast` has its forecast time, in any unit.
    """
    count, axes = points.shape
    lengths = np.full(axes, USUAL_LENGTH)
    mean = np.log(forecast) / DEVIATION
    return Posterior(lengths, points / lengths, mean, np.ones(count), np.zeros((0, count)), float("inf"))


def posterior(
    points: Float64Array, forecast: Float64Array, places: Sequence[int], us: Sequence[float],
    lengths: Float64Array | None = None,
) -> Posterior:  # fmt: skip
    """Return the Gaussian process after measurements: `us` are the microseconds of the configurations `places`.

    There is at least one, and `places` are indices into `points`. `points` and `forecast` are as in `prior`. `lengths`
    are correlation lengths of an earlier fit; if `None`, they are fitted.
    """
    rows, logs = _representative(np.asarray(places, np.intp), np.log(np.asarray(us, np.float64)), MOST_POINTS)
    trend = np.log(forecast)
    own = trend[rows] - trend[rows].mean()
    slope = float((own @ (logs - logs.mean()) + _SLOPE_WEIGHT) / (own @ own + _SLOPE_WEIGHT))
    # A forecast that contradicts the measurements is worse than none.
    line = logs.mean() + max(slope, 0.0) * (trend - trend[rows].mean())
    rest = logs - line[rows]
    squares = _DEVIATION_WEIGHT * DEVIATION**2 + float(rest @ rest)
    scale = float(np.sqrt(squares / (_DEVIATION_WEIGHT + len(rows))))
    if lengths is None:
        few, values = _representative(rows, rest / scale, _FOR_LENGTHS)
        lengths = _lengths(points[few], values)
    scaled = points / lengths
    lower = np.linalg.cholesky(_covariance(scaled[rows]))
    half = np.linalg.solve(lower, _matern(scaled[rows], scaled))
    mean = half.T @ np.linalg.solve(lower, rest / scale) + line / scale
    return Posterior(
        lengths, scaled, mean, np.maximum(1.0 - (half**2).sum(axis=0), 1e-12), half, float(logs.min() / scale)
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
    """Return the correlation length of each axis: the best common one, then made shorter or longer where that is
    likelier.

    `values` are the measured logarithms at `points`. If there are few of them, every length is `USUAL_LENGTH`.
    """
    axes = points.shape[1]
    lengths: Float64Array = np.full(axes, USUAL_LENGTH)
    if len(values) < _FEWEST_FOR_LENGTHS:
        return lengths
    best = _probability(points, values, lengths)
    same = [lengths * factor for factor in _LENGTH_FACTORS]
    for other in same:
        if (found := _probability(points, values, other)) > best:
            lengths, best = other, found
    for axis in range(axes):
        for factor in _LENGTH_FACTORS:
            other = lengths.copy()
            other[axis] *= factor
            if (found := _probability(points, values, other)) > best:
                lengths, best = other, found
    return lengths


def _probability(points: Float64Array, values: Float64Array, lengths: Float64Array) -> float:
    """Return the logarithm of the posterior probability of `lengths`, up to a constant."""
    unusual = np.log(lengths / USUAL_LENGTH) / _LENGTH_DEVIATION
    return _likelihood(points / lengths, values) - 0.5 * float(unusual @ unusual)


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
