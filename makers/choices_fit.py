"""Fit the figures of the rule of waves (`dispatch/waves.py`) to the times of one kernel and configuration."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from choices_times import Times
from gemmlab.dispatch.measurements import Measurement, Table
from gemmlab.dispatch.waves import FAN, ODD, estimate, gpu_model, odd_rows
from gemmlab.ops.gemm_problem import LAYOUTS, GemmProblem

MEMORY_GBS, PARTS_GBS = 2900.0, 3000.0
"""Rates of cold matrices through memory and of parts through the level-2 cache, fitted to all kernels together."""
_START_US = (3.5, 15.0)
"""What a launch and the ends of a block may take: figures of few sizes would say anything."""
_FAR = 4.0
"""Times this many times those of the least per product say little about where the kernel is a choice."""
_Floats = npt.NDArray[np.float64]


def fitted(times: Times, table: Table) -> Measurement:
    """Return the entry with the figures whose logarithms err least, by mean magnitude."""
    plain = {key: us for key, us in times.us.items() if key[0].layout == "nn" and not odd_rows(key[0])}
    if len(plain) < 3:
        return _from_few(times.base, plain, table)
    figures = _least_error(times.base, plain, table)
    entry = replace(times.base, start_us=figures[0], alone_us=figures[1], share_us=figures[2], meet_us=figures[3])
    return replace(entry, factors=_factors(entry, times, table))


def _least_error(base: Measurement, us: dict[tuple[GemmProblem, int], float], table: Table) -> list[float]:
    where = gpu_model(table.gpu)
    # With one figure of 1 and the others 0 the rule gives what multiplies it.
    unit = replace(base, start_us=0.0, meet_us=0.0, factors={})
    rows = []
    for (problem, parts), measured in us.items():
        found = estimate(replace(unit, alone_us=0.0, share_us=1.0), problem, where, table, parts=parts)
        per_sm = math.ceil(found.blocks / where.sms)
        whole, rest = divmod(per_sm, found.resident)
        depth = base.config.get("BK", 1)
        steps = -(-problem.k // (depth * parts)) * depth
        free = estimate(replace(unit, alone_us=0.0, share_us=0.0), problem, where, table, parts=parts).us
        passed = 8 * problem.m * problem.n * parts / (table.parts_gbs * 1e3) if parts > 1 else 0.0
        levels = math.ceil(math.log(parts, FAN) - 1e-9) if parts > 1 else 0
        rows.append((steps, whole, found.resident, rest, free - passed, levels, passed, measured))
    steps, whole, resident, rest, memory, levels, passed, measured_us = np.array(rows, np.float64).T

    def predicted(figures: Sequence[float]) -> _Floats:
        start, alone, share, meet = figures
        step = whole * np.maximum(alone, resident * share) + np.where(rest > 0, np.maximum(alone, rest * share), 0.0)
        result: _Floats = start + np.maximum(steps * step, memory) + levels * meet + passed
        return result

    weights = _weights(us)

    def error(logs: _Floats) -> float:
        start, *others = np.exp(logs)
        figures = (min(max(start, _START_US[0]), _START_US[1]), *others)
        return float(np.sum(weights * np.abs(np.log(predicted(figures) / measured_us))) / np.sum(weights))

    share = float(np.median(measured_us / np.maximum(1.0, steps * (whole * resident + rest))))
    tried = [_searched(error, np.log([6.0, factor * share, share, 2.0])) for factor in (1.5, 4.0, 10.0)]
    start, *others = np.exp(min(tried, key=error))
    return [round(min(max(start, _START_US[0]), _START_US[1]), 3), *(float(f"{value:.4g}") for value in others)]


def _searched(error: Callable[[_Floats], float], first: _Floats) -> _Floats:
    found: _Floats = minimize(
        error, first, method="Nelder-Mead", options={"maxiter": 2000, "xatol": 1e-3, "fatol": 1e-6}
    ).x
    return found


def _weights(us: dict[tuple[GemmProblem, int], float]) -> _Floats:
    """Return 1 for the numbers of parts that are near the best of their product, less for others."""
    best: dict[GemmProblem, float] = {}
    for (problem, _), time_us in us.items():
        best[problem] = min(time_us, best.get(problem, math.inf))
    ratios = np.array([time_us / best[problem] for (problem, _), time_us in us.items()])
    return np.where(ratios < 1.3, 1.0, np.where(ratios < _FAR, 0.1, 0.0))


def _factors(entry: Measurement, times: Times, table: Table) -> dict[str, float]:
    """Return by how much steps take longer in other layouts and with odd rows: where the steps decide the time."""
    where = gpu_model(table.gpu)
    ratios: dict[str, list[float]] = {}
    for (problem, parts), us in times.us.items():
        name = ODD if problem.layout == "nn" and odd_rows(problem) else problem.layout
        if name == "nn" or (name != ODD and odd_rows(problem)):
            continue
        whole = estimate(entry, problem, where, table, parts=parts).us
        still = replace(entry, alone_us=0.0, share_us=0.0)
        steps = whole - estimate(still, problem, where, table, parts=parts).us
        if steps > 0.4 * whole:
            ratios.setdefault(name, []).append((us - whole + steps) / steps)
    return {name: round(max(0.8, statistics.median(ratios[name])), 3) for name in (*LAYOUTS[1:], ODD) if name in ratios}


def _from_few(base: Measurement, us: dict[tuple[GemmProblem, int], float], table: Table) -> Measurement:
    """Return the figures where few sizes were measured: one figure is fitted, to the largest."""
    where, start = gpu_model(table.gpu), 6.0
    (problem, parts), measured = max(us.items(), key=lambda item: item[0][0].m * item[0][0].n * item[0][0].k)
    unit = estimate(replace(base, start_us=0.0, alone_us=0.0, share_us=1.0), problem, where, table, parts=parts)
    share = (measured - start) / unit.us
    return replace(base, start_us=start, alone_us=float(f"{unit.resident * share:.4g}"), share_us=float(f"{share:.4g}"))
