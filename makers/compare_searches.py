"""Replay searches on recorded spaces: ours, random order, and strategies of Kernel Tuner; who finds what, how soon.

    python makers/compare_searches.py out.json SPACE.jsonl.gz... [--seeds 100] [--jobs 2] [--fit]
    python makers/compare_searches.py out.json --sweeps             the partial spaces that the sweeps have

The score of a search is the recorded time of its answer divided by that of the best configuration, at 5 % and at 20 %
of the seconds that it takes to compile, verify and time every configuration. Median, 90th percentile and worst over the
seeds. `--fit` prints the scores of other constants of our search instead, for the spaces that it is not judged on.
Kernel Tuner (pip install kernel_tuner) replays the same spaces in its simulation mode, as cache files.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import math
import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab.core.files import replace_file
from gemmlab.core.gpu import model
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.catalog import find_op
from gemmlab.tuning.exchange import write_cache
from gemmlab.tuning.forecast import Multiprocessors, forecasts
from gemmlab.tuning.replay import Recorded, RecordedSpace, ReplayBench, read_space
from gemmlab.tuning.search import Search
from gemmlab.tuning.space import space_from
from gemmlab.tuning.strategies import FITTED, Constants, Halving, RandomOrder, Strategy, run_within_budget

SHARES = (0.05, 0.2)
KERNEL_TUNER = (
    "genetic_algorithm", "simulated_annealing", "mls", "diff_evo", "pso", "dual_annealing", "basinhopping", "bayes_opt",
    "random_sample",
)  # fmt: skip
"""Its strategies; `greedy_ils` is not among them, because with a time limit it does not end."""
_SLOWER = 1000.0
"""Times in cache files are multiplied by this, so that what Kernel Tuner itself takes does not count."""
HERE = Path(__file__).parents[1] / "benchmarks" / "results" / "h200"
SWEEPS = (("split_k", "256x256x16384"), ("split_k", "128x1024x4096 nt"), ("narrow_strip", "512x8x500000"),
          ("narrow_strip", "16x1024x4096 nt"))  # fmt: skip
"""(kernel, product) of which the sweep has many configurations; their compile times are assumed."""
_ASSUMED_BUILD_S, _ASSUMED_VERIFY_S, _ASSUMED_TURN_S, _ASSUMED_BUILDERS = 0.5, 0.05, 0.02, 4


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("spaces", nargs="*", type=Path)
    parser.add_argument("--sweeps", action="store_true")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--no-kernel-tuner", action="store_true")
    options = parser.parse_args(arguments)
    records = [read_space(path) for path in options.spaces]
    records += list(swept()) if options.sweeps else []
    if options.fit:
        for line in fitted(records, options.seeds):
            print(line, flush=True)
        return 0
    rows = []
    for record in records:
        for name, search in searches(record, kernel_tuner=not options.no_kernel_tuner):
            for share in SHARES:
                row = {"space": record.name, "configurations": len(record.space), "search": name, "share": share,
                       **scores(search, record, share, options.seeds)}  # fmt: skip
                rows.append(row)
                print(*(row[key] if not isinstance(row[key], float) else f"{row[key]:.4f}" for key in row), flush=True)
    about = {"schema": "gemmlab.searches/1", "seeds": options.seeds, "constants": str(FITTED), "rows": rows}
    replace_file(options.out, json.dumps(about, indent=1).encode())
    return 0


Play = Callable[[float, int], float]
"""(seconds, seed) -> score of the answer; infinite without one."""


def searches(record: RecordedSpace, *, kernel_tuner: bool) -> Iterator[tuple[str, Play]]:
    """Yield the searches by name."""
    forecast = forecast_of(record)
    yield "gemmlab", lambda seconds, seed: played(Halving(seed), record, seconds, seed, forecast)
    yield "random", lambda seconds, seed: played(RandomOrder(seed), record, seconds, seed, forecast)
    if kernel_tuner:
        for name in KERNEL_TUNER:
            yield f"Kernel Tuner {name}", lambda seconds, seed, name=name: by_kernel_tuner(name, record, seconds, seed)  # type: ignore[misc]


def scores(search: Play, record: RecordedSpace, share: float, seeds: int) -> dict[str, float]:
    """Return median, 90th percentile and worst score over the seeds."""
    found = sorted(search(share * record.exhaustive_s, seed) for seed in range(seeds))
    return {"median": float(np.median(found)), "p90": found[min(seeds - 1, int(0.9 * seeds))], "worst": found[-1]}


def played(strategy: Strategy, record: RecordedSpace, seconds: float, seed: int, forecast: Sequence[float]) -> float:
    """Return the score of one of our strategies."""
    search = Search(record.space, ReplayBench(record, seed), seconds, forecast=forecast)
    run_within_budget(strategy, search)
    best = search.best()
    return math.inf if best is None else record.median_us(best.place) / record.best_us


def by_kernel_tuner(name: str, record: RecordedSpace, seconds: float, seed: int) -> float:
    """Return the score of a strategy of Kernel Tuner, which replays the space as a cache file."""
    import kernel_tuner

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - what Kernel Tuner draws from
    # Kernel Tuner does one thing after the other; here compilers work while the device measures.
    serial_s = sum(one.build_s / record.builders + one.verify_s + one.turn_s for one in record.outcomes)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "cache.json"
        write_cache(record, path, scale=_SLOWER * record.exhaustive_s / serial_s)
        with contextlib.redirect_stdout(io.StringIO()):
            results, _ = kernel_tuner.tune_cache(
                str(path), strategy=name, strategy_options={"time_limit": seconds * _SLOWER}, quiet=True
            )
    times = [
        (one["time"], record.space.place(one)) for one in results if isinstance(one.get("time"), int | float)
    ]  # fmt: skip
    place = min(times, default=(math.inf, None))[1]
    return math.inf if place is None else record.median_us(place) / record.best_us


def fitted(records: Sequence[RecordedSpace], seeds: int) -> Iterator[str]:
    """Yield the scores of other constants: the geometric mean of the medians over spaces and shares, best last."""
    grid = product((8, 12, 16, 24), (0.1, 0.25, 0.5), (1.05, 1.15), (6, 8, 12), (2, 3))
    found = []
    for first, promising, leave, finalists, rounds in grid:
        constants = replace(
            FITTED, first=first, promising=promising, leave=leave, finalists=finalists, rounds=rounds
        )  # fmt: skip
        found.append((_mean_score(constants, records, seeds), constants))
        yield f"{found[-1][0]:.5f} {constants}"
    score, constants = min(found, key=lambda one: one[0])
    yield f"best: {score:.5f} {constants}"


def _mean_score(constants: Constants, records: Sequence[RecordedSpace], seeds: int) -> float:
    logs = []
    for record, share in product(records, SHARES):
        forecast = forecast_of(record)
        seconds = share * record.exhaustive_s
        found = [played(Halving(seed, constants), record, seconds, seed, forecast) for seed in range(seeds)]
        logs.append(math.log(float(np.median(found))))
    return math.exp(sum(logs) / len(logs))


def forecast_of(record: RecordedSpace) -> list[float]:
    """Return the forecast for a recorded space; 1 for each where the record does not say what it is of."""
    header = record.header
    if "problems" not in header:
        return [1.0] * len(record.space)
    kernel, op = find_kernel(header["kernel"]), find_op(header["op"])
    gpu = model(header["device"])
    problem = op.problem_from_json(header["problems"][0])
    return forecasts(kernel, op, problem, record.space, Multiprocessors(gpu.limits, gpu.sms))


def swept() -> Iterator[RecordedSpace]:
    """Yield partial spaces from the sweep of the library's kernels."""
    with gzip.open(HERE / "sweep.jsonl.gz") as file:
        lines = [json.loads(line) for line in file]
    for kernel, size in SWEEPS:
        rows = [line for line in lines if (line.get("kernel"), line.get("size")) == (kernel, size) and "us" in line]
        names = tuple(rows[0]["config"])
        space = space_from(names, [row["config"] for row in rows])
        by_config = {tuple(row["config"][name] for name in names): row for row in rows}
        outcomes = tuple(
            Recorded((by_config[values]["us"],), "", False, _ASSUMED_BUILD_S, _ASSUMED_VERIFY_S, _ASSUMED_TURN_S)
            for values in space.members
        )
        header: dict[str, Any] = {"kernel": kernel, "op": "gemm", "device": "H200", "problems": [rows[0]["problem"]]}
        yield RecordedSpace(f"{kernel} at {size} (partial)", space, outcomes, _ASSUMED_BUILDERS, header)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
