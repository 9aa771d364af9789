"""Time many kernels in many configurations at many products on a GPU, in one process, with cold caches, as JSON lines.

    python makers/sweep_kernels.py out.jsonl --kernels split_k:all async_copy:20 vector_load:BM=64,BN=64 --suite
    python makers/sweep_kernels.py out.jsonl --kernels table --sizes 35x700x2048,256x256x16384 --layouts nn,nt

Lines are written one by one, and a trial that is in the file is not timed again: a sweep that was stopped, or ended by
`--seconds`, goes on when it is called again. The exit code is 3 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gemmlab.core.environment import describe_environment
from gemmlab.core.errors import CompileError, GemmlabError, UsageError
from gemmlab.core.expr import Expression, parse
from gemmlab.devices.device import Device
from gemmlab.dispatch.choice import MOST_BLOCKS
from gemmlab.dispatch.waves import PARTS, layout_names
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.catalog import find_op
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.timing.prebuild import prebuild
from quick_times import OP, QuickTimes, Trial, code_facts, cold_device, instances
from random_products import LARGEST
from sweep_request import parsed_trials, wanted_problems

SCHEMA = "gemmlab.sweep/1"
FEWEST_BLOCKS = 48
"""The fewest blocks of a sensible trial that splits k: fewer leave a GPU idle, unless k cannot be split further."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    which = "NAME, NAME:all, NAME:N, NAME:P=1,Q=2+3, table, or @FILE with a line each"
    parser.add_argument("--kernels", nargs="+", required=True, metavar="WHICH", help=which)
    parser.add_argument("--op", default=OP.name, choices=("gemm", "batch"))
    parser.add_argument("--sizes", help="as gemmlab bench takes them")
    parser.add_argument("--suite", action="store_true", help="the products of the suite of shapes")
    parser.add_argument("--family", help="one family of the suite")
    parser.add_argument("--random", metavar="SEED:COUNT", help="random products, as regret.py draws them")
    parser.add_argument("--most-steps", type=int, default=38, help="log2 of the most multiply-adds of a random one")
    parser.add_argument("--most-k", type=int, default=LARGEST, help="the largest k of a random one")
    parser.add_argument("--layouts", help="each size in these layouts, as nn,nt")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--slow", type=float, default=4.0, help="a first run this many times the best is the only one")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start nothing new after that")
    options = parser.parse_args(arguments)
    try:
        return sweep(options)
    except GemmlabError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def sweep(options: argparse.Namespace) -> int:
    """Time all trials that the file lacks. Returns 0, also if time ran out; the last line of output says so."""
    started = time.monotonic()
    op = find_op(options.op)
    trials = [trial for text in options.kernels for trial in parsed_trials(text, op.name)]
    trials = list({trial.key: trial for trial in trials}.values())
    problems = wanted_problems(options)
    device = cold_device(options.device)
    known = read_lines(options.file)
    prebuild(instances(problems, trials, op), device, lambda text: print(text, end="\r", file=sys.stderr))
    times = QuickTimes(device, problems, op=op)
    done = {(line["size"], trial_of(line).key) for line in known if "kernel" in line}
    left = len(problems) * len(trials) - len(done)
    with options.file.open("a", encoding="utf-8") as file:
        if not known:
            write_line(file, header(device, options))
        for problem in problems:
            best = min(
                (line["us"] for line in known if line.get("size") == problem.label and "us" in line), default=0.0
            )
            for trial in trials:
                if (problem.label, trial.key) in done or not is_sensible(problem, trial):
                    continue
                if time.monotonic() - started > options.seconds:
                    print(f"{left} left: call it again")
                    return 0
                line = {"size": problem.label, "problem": problem.to_json(), "kernel": trial.kernel,
                        "config": dict(trial.config), **figures(times, problem, trial, options, best)}  # fmt: skip
                write_line(file, line)
                left -= 1
                best = min(filter(None, (best, line.get("us", 0.0))), default=0.0)
    print("all timed")
    return 0


def is_sensible(problem: GemmProblem, trial: Trial) -> bool:
    """Return whether a trial is worth timing at a product: its condition is true there, and if it splits k, then into
    no more parts than k has steps, and into so many that the blocks are neither too few nor too many for a GPU.
    """
    parts = trial.config.get(PARTS, 1)
    names = {**trial.config, "M": problem.m, "N": problem.n, "K": problem.k, **layout_names(problem)}
    if trial.condition and not expression(trial.condition)(names):
        return False
    if parts == 1:
        return True
    blocks = math.prod(expression(text).whole(names) for text in find_kernel(trial.kernel).grid)
    steps = math.ceil(problem.k / trial.config.get("BK", 1))
    return parts <= steps and blocks <= MOST_BLOCKS and (blocks >= FEWEST_BLOCKS or 2 * parts > steps)


@cache
def expression(text: str) -> Expression:
    return parse(text)


def figures(
    times: QuickTimes, problem: GemmProblem, trial: Trial, options: argparse.Namespace, best: float
) -> dict[str, Any]:
    """Return the figures of one line: times in microseconds and facts about the code; or `refused` with a reason, or
    `right` false.
    """
    if problem.layout not in (layouts := find_kernel(trial.kernel).layouts):
        return {"refused": f"reads {', '.join(layouts)}"}
    try:
        if not times.right(problem, trial):
            return {"right": False}
        bound = times.bound(problem, trial)
        us = bound.time(1)
        if not best or us[0] <= options.slow * best:
            us = bound.time(options.repeats)
    except (UsageError, CompileError, MemoryError) as error:
        return {"refused": str(error)}
    return {"us": statistics.median(us), "least_us": min(us), "runs": len(us), "right": True, **code_facts(bound)}


def trial_of(line: dict[str, Any]) -> Trial:
    return Trial(line["kernel"], line["config"])


def header(device: Device, options: argparse.Namespace) -> dict[str, Any]:
    """Return the first line: the device, the environment, and the options that figures depend on."""
    return {"schema": SCHEMA, "device": device.describe().name, "environment": describe_environment(),
            "repeats": options.repeats, "slow": options.slow}  # fmt: skip


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a sweep; none if there is no file. A last line that was cut off is removed from the file.

    Raises `UsageError` for a file that is no sweep.
    """
    if not path.exists():
        return []
    whole, _, rest = path.read_text(encoding="utf-8").rpartition("\n")
    try:
        lines = [json.loads(line) for line in whole.splitlines()]
        if rest:
            path.write_text(f"{whole}\n" if whole else "", encoding="utf-8")
        if lines and lines[0].get("schema") != SCHEMA:
            raise UsageError(f"{path}: schema {lines[0].get('schema')!r}, not {SCHEMA}")
    except (ValueError, AttributeError) as error:
        raise UsageError(f"{path} is no sweep: {error}") from error
    return lines


def write_line(file: Any, values: dict[str, Any]) -> None:
    file.write(json.dumps(values) + "\n")
    file.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
