"""Time the library's likely kernels at many random products on a GPU, with cold caches: for `correction_fit.py`.

    python makers/likely_times.py benchmarks/results/h200/likely.jsonl.gz --random 20261130:10000
    python makers/likely_times.py benchmarks/results/h200/likely-near.jsonl.gz --random 20261201:9000 --within 1.25

Products are random, or those of a file that `doubtful_products.py` wrote.

At each product the kernels and configurations with the least estimates (`dispatch/waves.py`) are timed; with `--within`
only those whose estimates, as `dispatch/correction.py` corrects them, are at most so many times the least one. A line
of the file has one product and its times. A call with the same file goes on where the last one ended. The exit code is
3 without a GPU.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from choices_times import without_times
from gemmlab.core.environment import describe_environment
from gemmlab.core.errors import CompileError, GemmlabError, UsageError
from gemmlab.devices.device import Device
from gemmlab.dispatch.choice import choose
from gemmlab.dispatch.correction import LIKELY
from gemmlab.dispatch.measurements import Table, shipped_table
from gemmlab.dispatch.precision_rule import HIGHEST
from gemmlab.dispatch.waves import Gpu
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.timing.prebuild import prebuild
from quick_times import OP, QuickTimes, Trial, cold_device, gpu_of, instances, say
from random_products import draw
from sweep_request import seed_and_count, table_trials

SCHEMA = "gemmlab.likely/1"
PRODUCTS = "gemmlab.products/1"
"""The schema of a file of products."""
RUNS = 5
"""How often each of the kernels and configurations is timed at a product."""
HOPELESS = 4.0
"""A trial whose first run takes this many times as long as the fastest so far is not run again."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--random", metavar="SEED:COUNT", help="random products, as regret.py draws them")
    which.add_argument("--products", type=Path, metavar="FILE", help="the products of a file")
    parser.add_argument("--within", type=float, metavar="FACTOR", help="the largest corrected estimate, by the least")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no product after that")
    options = parser.parse_args(arguments)
    try:
        return timed(options)
    except GemmlabError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def timed(options: argparse.Namespace) -> int:
    """Time the products that the file lacks. Returns 0, also if time ran out; the last line of output says so."""
    started = time.monotonic()
    title, problems = asked_for(options)
    device = cold_device(options.device)
    new = not options.file.exists()
    head, lines = (header(device, title, options.within), []) if new else read(options.file, SCHEMA)
    if (head["random"], head.get("within")) != (title, options.within):
        raise UsageError(f"{options.file} has {head['random']}, --within {head.get('within')}; use another file")
    prebuild(instances(problems[:400], table_trials()), device, say)
    where, times = gpu_of(device), QuickTimes(device, problems)
    rule = without_times(shipped_table())
    if not options.within:
        rule = replace(rule, correction=None)
    numbers = {Trial(kernel, config).key: at for at, (kernel, config) in enumerate(head["trials"])}
    with gzip.open(options.file, "at", encoding="utf-8") as file:
        if new:
            file.write(json.dumps(head) + "\n")
        for problem in problems[len(lines) :]:
            if time.monotonic() - started > options.seconds:
                print("not all timed: call it again")
                return 0
            found = times_at(times, problem, likely(problem, where, rule, options.within))
            us = {numbers[key]: us for key, us in found.items()}
            file.write(json.dumps({"problem": plain(problem), "us": us}, separators=(",", ":")) + "\n")
    print("all timed")
    return 0


USUAL = {"alpha": 1.0, "beta": 0.0, "contents": "uniform"}
"""Fields of a problem that all lines would have alike."""


def plain(problem: GemmProblem) -> dict[str, Any]:
    """Return the problem as JSON values, less the usual ones."""
    return {name: value for name, value in problem.to_json().items() if name not in USUAL}


def problem_of(values: Mapping[str, Any]) -> GemmProblem:
    """Return the problem that `plain` gave as JSON values."""
    return OP.problem_from_json({**USUAL, **values})


def asked_for(options: argparse.Namespace) -> tuple[str, list[GemmProblem]]:
    """Return a title of the products to time, and the products."""
    if options.random:
        return options.random, draw(*seed_and_count(options.random))
    head, lines = read(options.products, PRODUCTS)
    return head["title"], [problem_of(line) for line in lines]


def times_at(times: QuickTimes, problem: GemmProblem, trials: Sequence[Trial]) -> dict[tuple[Any, ...], float]:
    """Return the median times in microseconds of the trials that run and are right, by `Trial.key`."""
    found: dict[tuple[Any, ...], float] = {}
    for trial in trials:
        try:
            if not times.right(problem, trial):
                print(f"wrong: {problem.label} by {trial}", file=sys.stderr)
                continue
            bound = times.bound(problem, trial)
            us = bound.time(1)
            if us[0] <= HOPELESS * min(found.values(), default=us[0]):
                us = bound.time(RUNS)
        except (UsageError, CompileError, MemoryError):
            continue
        found[trial.key] = round(statistics.median(us), 2)
    return found


def likely(problem: GemmProblem, where: Gpu, rule: Table, within: float | None) -> list[Trial]:
    """Return trials for the candidates with the least estimates by `rule`, a table without times."""
    considered = choose(problem, where, rule, precision=HIGHEST).considered[:LIKELY]
    most = considered[0].us * (within or math.inf)
    return [Trial(one.kernel, one.config) for one in considered if one.us <= most]


def header(device: Device, title: str, within: float | None) -> dict[str, Any]:
    """Return the first line. `trials` has kernels and configurations by the numbers that lines call them by."""
    trials = [(trial.kernel, dict(trial.config)) for trial in table_trials()]
    return {
        "schema": SCHEMA, "device": device.describe().name, "environment": describe_environment(),
        "random": title, "within": within, "likely": LIKELY, "runs": RUNS, "trials": trials,
    }  # fmt: skip


def read(path: Path, schema: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the first line of a file and the lines of products. Raises `UsageError` for a file of another schema."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            head, *lines = map(json.loads, file)
        if head["schema"] != schema:
            raise UsageError(f"{path}: schema {head['schema']!r}, not {schema}")
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} cannot be read as {schema}: {error}") from error
    return head, lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
