"""Statistics of repeated timings, with NumPy only; random draws are seeded, so results are reproducible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]
Timings = Mapping[tuple[int, int], float]
"""(process, round) -> time of a turn. Two contestants' turns with the same key ran shortly after each other."""

RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Spread:
    """Number of samples, their median and their dispersion, in their unit."""

    count: int
    median: float
    iqr: float
    """Interquartile range: the third quartile minus the first."""
    mad: float
    """Median absolute deviation from the median."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of medians, its 95 % interval from `low` to `high`, and the bootstrap replicates behind the interval."""

    value: float
    low: float
    high: float
    replicates: Float64Array


def spread(samples: Sequence[float] | Float64Array) -> Spread:
    """Return the number of samples, their median, IQR and MAD. Raises `ValueError` if there is no sample."""
    values = np.asarray(samples, dtype=np.float64)
    if values.size == 0:
        raise ValueError("no samples")
    first, median, third = np.percentile(values, (25, 50, 75))
    return Spread(int(values.size), float(median), float(third - first), float(np.median(np.abs(values - median))))


def geometric_mean(values: Sequence[float] | Float64Array) -> float:
    """Return the geometric mean. Raises `ValueError` for no number, or for one that is not positive."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.size == 0 or not np.all(numbers > 0):
        raise ValueError("a geometric mean needs positive numbers")
    return float(np.exp(np.mean(np.log(numbers))))


def ratio_of_medians(numerator: Timings, denominator: Timings, *, seed: int = 0, resamples: int = RESAMPLES) -> Ratio:
    """Return median(numerator) / median(denominator) over their common keys, with a bootstrap 95 % interval.

    Resampling follows the experiment: processes are drawn with replacement, then rounds within each drawn process; both
    contestants' times come from the same round. Calls with equal keys, `seed` and `resamples` draw the same keys, so
    replicates of different problems may be combined one by one. Raises `ValueError` when there is no common key.
    """
    moments = sorted(numerator.keys() & denominator.keys())
    if not moments:
        raise ValueError("no common rounds")
    processes = sorted({process for process, _ in moments})
    rounds = [[moment for moment in moments if moment[0] == process] for process in processes]
    counts = np.array([len(group) for group in rounds])
    width = int(counts.max())
    table = np.full((2, len(processes), width), np.nan)
    for row, group in enumerate(rounds):
        for column, moment in enumerate(group):
            table[:, row, column] = numerator[moment], denominator[moment]
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(processes), size=(resamples, len(processes), 1))
    columns = np.floor(rng.random((resamples, len(processes), width)) * counts[drawn]).astype(np.intp)
    medians = np.median(table[:, drawn, columns].reshape(2, resamples, -1), axis=2)
    replicates = medians[0] / medians[1]
    low, high = np.percentile(replicates, (2.5, 97.5))
    value = np.nanmedian(table[0]) / np.nanmedian(table[1])
    return Ratio(float(value), float(low), float(high), replicates)


def combine_ratios(ratios: Sequence[Ratio]) -> Ratio:
    """Return the geometric mean of ratios of different problems, which `ratio_of_medians` drew with the same keys.

    Replicates with the same index come from the same rounds and are averaged, so the interval takes account of noise
    that the problems share.
    """
    replicates = np.exp(np.mean(np.log([ratio.replicates for ratio in ratios]), axis=0))
    low, high = np.percentile(replicates, (2.5, 97.5))
    return Ratio(geometric_mean([ratio.value for ratio in ratios]), float(low), float(high), replicates)


def quotient(numerator: Ratio, denominator: Ratio) -> Ratio:
    """Return numerator / denominator for ratios from independent experiments, such as two records.

    Both need the same number of replicates. The interval is computed on logarithms, so that the inverse quotient has
    the reciprocal interval.
    """
    replicates = numerator.replicates / denominator.replicates
    low, high = np.exp(np.percentile(np.log(replicates), (2.5, 97.5)))
    return Ratio(numerator.value / denominator.value, float(low), float(high), replicates)
