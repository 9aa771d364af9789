"""Measure the regret of the library call's choice: the chosen kernel's time divided by that of the fastest candidate.

    python makers/regret.py SEED benchmarks/results/h200/regret.json

Products are drawn from the seed: m, n and k log-uniform in 1..16384 with at most 2^38 multiply-adds, layout and leading
dimensions random. At each, all kernels and configurations that the choice considers are timed quickly; the fastest few
and the chosen one are timed again, in turns. The file is written after each product, and a call with the same file goes
on where the last one ended. The exit code is 3 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from best_of_all import regret_at, title, trials_of
from gemmlab.core.environment import describe_environment
from gemmlab.core.errors import GemmlabError, UsageError
from gemmlab.core.files import replace_file
from gemmlab.devices.device import Device
from gemmlab.dispatch.choice import choose
from gemmlab.dispatch.measurements import shipped_table
from gemmlab.dispatch.precision_rule import HIGHEST, REQUESTS
from gemmlab.timing.prebuild import prebuild
from quick_times import QuickTimes, Trial, cold_device, gpu_of, instances, say
from random_products import LARGEST, draw

SCHEMA = "gemmlab.regret/1"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int)
    parser.add_argument("file", type=Path)
    parser.add_argument("--shapes", type=int, default=100)
    parser.add_argument("--largest", type=int, default=LARGEST, help="the largest extent")
    parser.add_argument("--precision", default=HIGHEST, choices=tuple(REQUESTS))
    parser.add_argument("--rounds", type=int, default=7, help="turns of each trial that is timed again")
    parser.add_argument("--again", type=int, default=6, help="how many of the best are timed again")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no product after that")
    options = parser.parse_args(arguments)
    try:
        record = measured(options)
    except GemmlabError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(in_words(record))
    return 0


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the products that the file lacks, and return the record, which is written after each product.

    Raises `DeviceError` without the device, and as `record_so_far`.
    """
    started = time.monotonic()
    device = cold_device(options.device)
    where, record = gpu_of(device), record_so_far(options, device)
    problems = draw(options.seed, options.shapes, options.largest)
    done = {shape["size"] for shape in record["shapes"]}
    choices = {
        problem: choose(problem, where, shipped_table(), precision=options.precision)
        for problem in problems
        if problem.label not in done
    }
    code = (pair for problem, choice in choices.items() for pair in instances([problem], trials_of(choice)))
    prebuild(code, device, say)
    times = QuickTimes(device, problems, options.seed)
    for problem, choice in choices.items():
        if time.monotonic() - started > options.seconds:
            break
        shuffle = random.Random(f"{options.seed} {problem.label}")  # noqa: S311 - an order, not a secret
        record["shapes"].append(regret_at(times, problem, choice, options, shuffle))
        regrets = [shape["regret"] for shape in record["shapes"]]
        record |= {"left": len(problems) - len(regrets), "median": statistics.median(regrets), "worst": max(regrets)}
        replace_file(options.file, (json.dumps(record, indent=1) + "\n").encode())
        say(f"{len(regrets)} of {len(problems)}: {problem.label} {regrets[-1]:.3f}")
    return record


def record_so_far(options: argparse.Namespace, device: Device) -> dict[str, Any]:
    """Return the record in the file, or one without products if there is no file.

    Raises `UsageError` for a file of other options, of another device, or of another table of choices, whose estimates
    may be corrected by other trees.
    """
    table = shipped_table()
    facts = {
        "schema": SCHEMA, "seed": options.seed, "precision": options.precision, "device": device.describe().name,
        "table": table.taken, "correction": None if table.correction is None else table.correction.facts["origin"],
        "products": options.shapes, "largest": options.largest,
        "rounds": options.rounds, "timed_again": options.again,
    }  # fmt: skip
    if not options.file.exists():
        return {**facts, "environment": describe_environment(), "left": options.shapes, "median": None, "worst": None,
                "shapes": []}  # fmt: skip
    try:
        record: dict[str, Any] = json.loads(options.file.read_text(encoding="utf-8"))
        different = [name for name, value in facts.items() if record.get(name) != value]
    except (ValueError, AttributeError) as error:
        raise UsageError(f"{options.file} is no record of a regret: {error}") from error
    if different:
        name = different[0]
        raise UsageError(f"{options.file}: {name} is {record.get(name)!r}, not {facts[name]!r}; write to another file")
    return record


def in_words(record: Mapping[str, Any]) -> str:
    """Return lines with the median and worst regret, and the ten products with the largest."""
    shapes = sorted(record["shapes"], key=lambda shape: -shape["regret"])
    if not shapes:
        return f"seed {record['seed']}: no product yet, {record['left']} left"
    lines = [
        f"seed {record['seed']}, {len(shapes)} products: median {record['median']:.3f}, worst {record['worst']:.3f}",
        *([f"{record['left']} left: call it again"] if record["left"] else []),
    ]
    for shape in shapes[:10]:
        pair = " beside ".join(
            f"{one['us']:.1f} us {title(Trial(one['kernel'], one['config']))}"
            for one in (shape["chosen"], shape["best"])
        )
        lines.append(f"  {shape['regret']:.3f} {shape['size']} ({shape['basis']}): {pair}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
