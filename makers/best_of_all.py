"""Time all candidates that a choice considers for one product, and the fastest few again in turns, for `regret.py`."""

from __future__ import annotations

import argparse
import random
import statistics
from typing import Any

from gemmlab.core.errors import CompileError, UsageError
from gemmlab.dispatch.choice_values import Choice
from gemmlab.kernels.bound import BoundKernel
from gemmlab.ops.gemm_problem import GemmProblem
from quick_times import QuickTimes, Trial

QUICK_RUNS, RUNS, LONG_US = 3, 4, 5000.0
"""The runs of a trial at first, and its runs in a turn; a trial whose runs take `LONG_US` microseconds or more gets one
run each.
"""
HOPELESS = 2.5
"""A trial whose first run takes this many times as long as the fastest so far is not run again at first."""


def regret_at(
    times: QuickTimes, problem: GemmProblem, choice: Choice, options: argparse.Namespace, shuffle: random.Random
) -> dict[str, Any]:
    """Return the record's entry for one product. Raises `UsageError` if the chosen kernel does not run or is wrong."""
    chosen, refused, quick = trials_of(choice)[0], dict[str, str](), dict[tuple[Any, ...], float]()
    ready: dict[tuple[Any, ...], tuple[Trial, BoundKernel]] = {}
    for trial in trials_of(choice):
        try:
            if not times.right(problem, trial):
                raise UsageError("its result is wrong")  # noqa: TRY301 - as a kernel that refuses
            bound = times.bound(problem, trial)
            us = bound.time(1)
            if us[0] < LONG_US and us[0] <= HOPELESS * min(quick.values(), default=us[0]):
                us = bound.time(QUICK_RUNS)
        except (UsageError, CompileError, MemoryError) as error:
            if trial.key == chosen.key:
                raise UsageError(f"{problem.label}: the choice {title(trial)} fails: {error}") from error
            refused[title(trial)] = str(error)
            continue
        quick[trial.key], ready[trial.key] = statistics.median(us), (trial, bound)
    best = sorted(quick, key=quick.__getitem__)[: options.again]
    finalists = list(dict.fromkeys([chosen.key, *best]))
    samples: dict[tuple[Any, ...], list[float]] = {key: [] for key in finalists}
    for _ in range(options.rounds):
        for key in shuffle.sample(finalists, len(finalists)):
            runs = 1 if quick[key] >= LONG_US else RUNS
            samples[key].append(statistics.median(ready[key][1].time(runs)))
    medians = {key: statistics.median(values) for key, values in samples.items()}
    winner = min(medians, key=medians.__getitem__)
    return {
        "size": problem.label, "problem": problem.to_json(), "basis": choice.basis, "considered": len(quick),
        "chosen": {**fields(chosen), "us": medians[chosen.key]},
        "best": {**fields(ready[winner][0]), "us": medians[winner]},
        "regret": medians[chosen.key] / medians[winner], "again": [
            {**fields(ready[key][0]), "us": us, "quick_us": quick[key], "samples_us": samples[key]}
            for key, us in sorted(medians.items(), key=lambda item: item[1])
        ], "refused": refused,
    }  # fmt: skip


def trials_of(choice: Choice) -> list[Trial]:
    """Return a trial for each kernel and configuration that a choice considered, the chosen one first, each once."""
    every = [Trial(choice.kernel, choice.config), *(Trial(one.kernel, one.config) for one in choice.considered)]
    return list({trial.key: trial for trial in every}.values())


def fields(trial: Trial) -> dict[str, Any]:
    return {"kernel": trial.kernel, "config": dict(trial.config)}


def title(trial: Trial) -> str:
    return " ".join([trial.kernel, *(f"{name}={value}" for name, value in trial.config.items())])
