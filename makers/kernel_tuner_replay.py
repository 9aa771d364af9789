"""Run Kernel Tuner's strategies on a recorded space, in its simulation mode, which replays a cache file."""

from __future__ import annotations

import contextlib
import io
import math
import random
import warnings
from pathlib import Path

import numpy as np

from gemmlab.tuning.exchange import write_cache
from gemmlab.tuning.replay import RecordedSpace

STRATEGIES = (
    "genetic_algorithm", "simulated_annealing", "mls", "diff_evo", "pso", "dual_annealing", "basinhopping", "bayes_opt",
    "random_sample",
)  # fmt: skip
"""Kernel Tuner's strategies, without `greedy_ils`, which does not end if it has a time limit."""
_SLOWER = 1000.0
"""The factor of all times in cache files and of time limits. It makes Kernel Tuner's own time negligible."""


def write_slow_cache(record: RecordedSpace, path: Path) -> None:
    """Write a recorded space as a cache file for `replayed`, with times that make all configurations together take as
    long as in gemmlab's search.
    """
    # Kernel Tuner compiles and measures in sequence; gemmlab compiles while the device measures.
    compile_s = sum(record.program_s.values()) / record.builders
    serial_s = compile_s + sum(one.verify_s + one.turn_s for one in record.outcomes)
    write_cache(record, path, scale=_SLOWER * record.exhaustive_s / serial_s)


def replayed(strategy: str, cache: Path, record: RecordedSpace, seconds: float, seed: int) -> float:
    """Return the time of a strategy's answer divided by that of the best configuration; infinite without an answer."""
    import kernel_tuner

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - what Kernel Tuner draws from
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        results, _ = kernel_tuner.tune_cache(
            str(cache), strategy=strategy, strategy_options={"time_limit": seconds * _SLOWER}, quiet=True
        )
    times = [(one["time"], record.space.place(one)) for one in results if isinstance(one.get("time"), int | float)]
    place = min(times, default=(math.inf, None))[1]
    return math.inf if place is None else record.median_us(place) / record.best_us
