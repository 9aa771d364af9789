"""Compare searches on recorded spaces, without a GPU: gemmlab's, random order, and Kernel Tuner's own strategies.

    python makers/compare_searches.py out.json SPACE.jsonl.gz... [--seeds 100] [--jobs 2]
    python makers/compare_searches.py out.json SPACE.jsonl.gz... --searches gemmlab,random    keeps the others' rows
    python makers/compare_searches.py out.json SPACE.jsonl.gz... --fit       scores of gemmlab's search by constants
    python makers/compare_searches.py out.json --sweeps             the partial spaces that the sweeps have

The score of a search is the recorded time of its answer divided by that of the best configuration, at 5 % and at 20 %
of the seconds that it takes to compile, verify and time every configuration. The record has the median, the 90th
percentile and the worst score over the seeds. `--fit` is meant for spaces that the search is not judged on. Kernel
Tuner (pip install kernel_tuner) replays the same spaces in its simulation mode, as cache files.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab.core.files import replace_file
from gemmlab.core.gpu import model
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.catalog import find_op
from gemmlab.tuning.forecast import Multiprocessors, forecasts
from gemmlab.tuning.replay import Recorded, RecordedSpace, ReplayBench, read_space
from gemmlab.tuning.search import Search
from gemmlab.tuning.space import space_from
from gemmlab.tuning.strategies import FITTED, Constants, Halving, RandomOrder, Strategy, run_within_budget
from kernel_tuner_replay import STRATEGIES, replayed, write_slow_cache

SCHEMA = "gemmlab.searches/1"
SHARES = (0.05, 0.2)
OTHERS = "Kernel Tuner "
SEARCHES = ("gemmlab", "random", *(OTHERS + name for name in STRATEGIES))
HERE = Path(__file__).parents[1] / "benchmarks" / "results" / "h200"
SWEEPS = (("split_k", "256x256x16384"), ("split_k", "128x1024x4096 nt"), ("narrow_strip", "512x8x500000"),
          ("narrow_strip", "16x1024x4096 nt"))  # fmt: skip
"""Pairs (kernel, product) with many configurations in the sweep; the sweep lacks compile times, so these
are assumed.
"""
_ASSUMED_BUILD_S, _ASSUMED_VERIFY_S, _ASSUMED_TURN_S, _ASSUMED_BUILDERS = 0.5, 0.05, 0.02, 4


@dataclass(frozen=True, slots=True)
class Work:
    """One search on one space with one budget, for all seeds."""

    space: str
    """The path of a recorded space, or `sweep N` for number N of `SWEEPS`."""
    search: str
    share: float
    seeds: int
    constants: Constants = FITTED


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("spaces", nargs="*")
    parser.add_argument("--sweeps", action="store_true")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--searches", default=",".join(SEARCHES), help="names, with commas between them")
    options = parser.parse_args(arguments)
    spaces = [*options.spaces, *(f"sweep {number}" for number in range(len(SWEEPS) * options.sweeps))]
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        if options.fit:
            _fit(pool, spaces, options.seeds)
            return 0
        work = [
            Work(space, search, share, options.seeds)
            for space, search, share in product(spaces, options.searches.split(","), SHARES)
        ]
        rows = []
        for row in pool.map(row_of, work):
            rows.append(row)
            print(*(f"{value:.4f}" if isinstance(value, float) else value for value in row.values()), flush=True)
    about = {"schema": SCHEMA, "seeds": options.seeds, "constants": str(FITTED), "rows": _merged(options.out, rows)}
    replace_file(options.out, json.dumps(about, indent=1).encode())
    return 0


def row_of(work: Work) -> dict[str, Any]:
    """Return the record's row of one work: median, 90th percentile and worst score over the seeds. Infinite scores are
    `None`.
    """
    record = space_of(work.space)
    found = sorted(score(work, seed) for seed in range(work.seeds))
    values = {
        "median": float(np.median(found)), "p90": found[min(work.seeds - 1, int(0.9 * work.seeds))],
        "worst": found[-1],
    }  # fmt: skip
    return {
        "space": record.name, "configurations": len(record.space), "search": work.search, "share": work.share,
        **{name: value if math.isfinite(value) else None for name, value in values.items()},
    }  # fmt: skip


def score(work: Work, seed: int) -> float:
    """Return a search's score for one seed: the time of its answer divided by that of the best configuration, infinite
    if it has no answer.
    """
    record = space_of(work.space)
    seconds = work.share * record.exhaustive_s
    if work.search.startswith(OTHERS):
        return replayed(work.search.removeprefix(OTHERS), cache_of(work.space), record, seconds, seed)
    strategy: Strategy = Halving(seed, work.constants) if work.search == "gemmlab" else RandomOrder(seed)
    search = Search(record.space, ReplayBench(record, seed), seconds, forecast=forecast_of(work.space))
    run_within_budget(strategy, search)
    best = search.best()
    return math.inf if best is None else record.median_us(best.place) / record.best_us


def _merged(out: Path, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of an earlier run in the file `out`, except those of the same space and search, then `rows`."""
    known = {(row["space"], row["search"]) for row in rows}
    before = json.loads(out.read_text())["rows"] if out.exists() else []
    return [*(row for row in before if (row["space"], row["search"]) not in known), *rows]


def _fit(pool: ProcessPoolExecutor, spaces: Sequence[str], seeds: int) -> None:
    """Print, for many constants of gemmlab's search, the geometric mean of its medians and 90th percentiles over spaces
    and budgets.
    """
    for ahead, leave, finalists in product((1.0, 1.25, 1.5, 2.0), (1.05, 1.1, 1.15), (4, 6, 8)):
        constants = replace(FITTED, ahead=ahead, leave=leave, finalists=finalists)
        work = [Work(space, "gemmlab", share, seeds, constants) for space, share in product(spaces, SHARES)]
        scores = [row[name] for row in pool.map(row_of, work) for name in ("median", "p90") if row[name] is not None]
        print(f"{math.exp(float(np.mean(np.log(scores)))):.5f} {constants}", flush=True)


@cache
def space_of(name: str) -> RecordedSpace:
    """Return a recorded space, in which configurations with the same program have the same program's number.

    The programs of the partial spaces of `SWEEPS` are unknown.
    """
    if name.startswith("sweep "):
        return swept(*SWEEPS[int(name.removeprefix("sweep "))])
    record = read_space(Path(name))
    kernel, op = find_kernel(record.header["kernel"]), find_op(record.header["op"])
    scalars, numbers = op.scalars(op.problem_from_json(record.header["problems"][0])), dict[Any, int]()
    found = []
    for place in range(len(record.space)):
        program = kernel.program(kernel.instantiate(record.space.config(place), scalars), kernel_target(record))
        found.append(numbers.setdefault((program.entry, program.options), len(numbers)))
    return replace(record, programs=tuple(found))


def kernel_target(record: RecordedSpace) -> str:
    """Return the architecture of a record's device."""
    return model(record.header["device"]).limits.arch


@cache
def forecast_of(name: str) -> list[float]:
    """Return the model's forecast of the time of each configuration of a recorded space."""
    record = space_of(name)
    kernel, op = find_kernel(record.header["kernel"]), find_op(record.header["op"])
    gpu = model(record.header["device"])
    problem = op.problem_from_json(record.header["problems"][0])
    return forecasts(kernel, op, problem, record.space, Multiprocessors(gpu.limits, gpu.sms))


_folder = cache(tempfile.TemporaryDirectory)
"""Return a folder that exists until the end of this process."""


@cache
def cache_of(name: str) -> Path:
    """Return Kernel Tuner's cache file for a recorded space; it is written at the first call."""
    path = Path(_folder().name) / f"{abs(hash(name))}.json"
    write_slow_cache(space_of(name), path)
    return path


def swept(kernel: str, size: str) -> RecordedSpace:
    """Return a partial space: the configurations of a kernel that the sweep of the library's kernels
    timed at a size.
    """
    with gzip.open(HERE / "sweep.jsonl.gz") as file:
        lines = [json.loads(line) for line in file]
    rows = [line for line in lines if (line.get("kernel"), line.get("size")) == (kernel, size) and "us" in line]
    names = tuple(rows[0]["config"])
    space = space_from(names, [row["config"] for row in rows])
    by_config = {tuple(row["config"][name] for name in names): row for row in rows}
    outcomes = tuple(
        Recorded((by_config[values]["us"],), "", False, _ASSUMED_BUILD_S, _ASSUMED_VERIFY_S, _ASSUMED_TURN_S)
        for values in space.members
    )
    header: dict[str, Any] = {"kernel": kernel, "op": "gemm", "device": "H200", "problems": [rows[0]["problem"]]}
    return RecordedSpace(f"{kernel} at {size} (partial)", space, outcomes, _ASSUMED_BUILDERS, header)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
