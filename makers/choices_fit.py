"""Fit the figures of the rule of waves (`dispatch/waves.py`) to the times of one kernel and configuration."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from choices_times import Times
from gemmlab.dispatch.measurements import Figures, Measurement, Table
from gemmlab.dispatch.waves import FAN, Estimate, block_steps, estimate, gpu_model, reads_by_words
from gemmlab.ops.batch_problem import BatchProblem
from gemmlab.ops.gemm_problem import GemmProblem

MEMORY_GBS, PARTS_GBS = 3900.0, 4000.0
"""Rates in GB/s at which cold matrices are read from memory, and parts of sums from the level-2 cache, fitted to all
kernels together.
"""
_START_US = (3.5, 15.0)
"""The least and the largest value in microseconds of the figure for a launch and the ends of a block. Times at few
sizes alone would leave it open.
"""
_FAR = 4.0
"""A time this many times the least of its product gets hardly any weight."""
_SLOWER, _ENOUGH = 1.2, 1.25
"""A kernel that takes more than `_SLOWER` times the least time of a product must not be chosen there. So an estimate
below its time, or below `_ENOUGH` times the least one, is an error, however far the time is from the least one.
"""
FEW = 6
"""If there are fewer times than this, only one figure is fitted."""
_Floats = npt.NDArray[np.float64]
Timed = Mapping[tuple[GemmProblem, int], float]
"""Microseconds by product and number of parts."""
Best = Mapping[tuple[GemmProblem, str], float]
"""The least time of each product at each precision."""


def fitted(times: Times, table: Table, best: Best) -> Measurement:
    """Return the entry with the figures that give the least weighted mean of |log(estimate / time)|, to which the mean
    of log(enough / estimate) is added where a kernel is slow and its estimate is not.

    `best` are the least times of all kernels, on which the weights depend.
    """
    if len(times.us) >= FEW:
        return replace(times.base, figures=_least_error(times.base, times.us, table, best))
    return _from_few(times.base, times.us, table)


def _least_error(base: Measurement, us: Timed, table: Table, best: Best) -> Figures:
    where = gpu_model(table.gpu)
    # With one figure at 1 and the others at 0, the rule gives that figure's factor.
    rows = []
    for (problem, parts), measured in us.items():
        found = _estimated(base, Figures(0.0, 0.0, 1.0), problem, parts, table)
        per_sm = math.ceil(found.blocks / where.sms)
        whole, rest = divmod(per_sm, found.resident)
        steps = block_steps(base, problem, parts, found.blocks)
        free = _estimated(base, Figures(0.0, 0.0, 0.0), problem, parts, table).us
        passed = found.passed_us
        levels = math.ceil(math.log(parts, FAN) - 1e-9) if parts > 1 else 0
        by_words = reads_by_words(problem)
        rows.append((steps, whole, found.resident, rest, free - passed, levels, passed, by_words, measured))
    steps, whole, resident, rest, memory, levels, passed, by_words, measured_us = np.array(rows, np.float64).T

    def predicted(figures: Sequence[float]) -> _Floats:
        start, alone, share, meet, ends, words = figures
        step = whole * np.maximum(alone, resident * share) + np.where(rest > 0, np.maximum(alone, rest * share), 0.0)
        step *= 1 + words * by_words
        result: _Floats = start + np.maximum((steps + ends) * step, memory) + levels * meet + passed
        return result

    least_us = np.array([best[problem, base.precision] for problem, _ in us])
    weights, slow = _weights(measured_us / least_us), measured_us > _SLOWER * least_us
    enough_us = np.minimum(measured_us, _ENOUGH * least_us)

    def error(logs: _Floats) -> float:
        start, *others = np.exp(logs)
        estimates = predicted((min(max(start, _START_US[0]), _START_US[1]), *others))
        near = np.sum(weights * np.abs(np.log(estimates / measured_us)))
        return float((near + np.sum(slow * np.maximum(0.0, np.log(enough_us / estimates)))) / np.sum(weights))

    share = float(np.median(measured_us / np.maximum(1.0, steps * (whole * resident + rest))))
    starts = [(5.0, factor * share, share, 2.0, ends, 0.2) for factor in (1.5, 4.0, 10.0) for ends in (2.0, 30.0)]
    tried = [_searched(error, np.log(start)) for start in starts]
    start, *others = np.exp(min(tried, key=error))
    others = [float(f"{value:.4g}") for value in others]
    best_figures = Figures(round(min(max(start, _START_US[0]), _START_US[1]), 3), *others)
    return best_figures if by_words.any() else best_figures._replace(words=0.0)


def _estimated(base: Measurement, figures: Figures, problem: GemmProblem, parts: int, table: Table) -> Estimate:
    products = problem.batch if isinstance(problem, BatchProblem) else 1
    entry, where = replace(base, figures=figures), gpu_model(table.gpu)
    return estimate(entry, problem, where, table, parts=parts, products=products)


def _searched(error: Callable[[_Floats], float], first: _Floats) -> _Floats:
    from scipy.optimize import minimize

    found: _Floats = minimize(
        error, first, method="Nelder-Mead", options={"maxiter": 3000, "xatol": 1e-3, "fatol": 1e-6}
    ).x
    return found


def _weights(ratios: _Floats) -> _Floats:
    """Return a weight for each ratio of a time to the least of its product: 1 near it, less the slower the kernel is,
    because it is chosen only where it is nearly the fastest.
    """
    return np.where(ratios < 1.2, 1.0, np.where(ratios < 1.6, 0.3, np.where(ratios < _FAR, 0.05, 1e-4)))


def _from_few(base: Measurement, us: Timed, table: Table) -> Measurement:
    """Return the entry for a kernel with few times: one figure is fitted, to the time of the largest product."""
    start = 6.0
    (problem, parts), measured = max(us.items(), key=lambda item: item[0][0].m * item[0][0].n * item[0][0].k)
    unit = _estimated(base, Figures(0.0, 0.0, 1.0), problem, parts, table)
    share = (measured - start) / unit.us
    return replace(base, figures=Figures(start, float(f"{unit.resident * share:.4g}"), float(f"{share:.4g}")))
