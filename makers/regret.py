"""Measure the regret of the library call's choice: its time over the best of all kernels and configurations.

    python makers/regret.py SEED benchmarks/results/h200/regret.json

Draws products from the seed: m, n and k log-uniform in 1..16384 with at most 2^38 multiply-adds, layout and leading
dimensions random. At each, everything that the choice considers is timed quickly; the best few and the chosen one are
timed again, in turns. The file is written after each product, and a call with the same file goes on where the last one
ended. The exit code is 3 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gemmlab.core.environment import describe_environment
from gemmlab.core.errors import CompileError, GemmlabError, UsageError
from gemmlab.core.files import replace_file
from gemmlab.core.precision import PRECISIONS
from gemmlab.devices.device import Device
from gemmlab.dispatch.choice import Choice, choose
from gemmlab.dispatch.measurements import shipped_table
from gemmlab.dispatch.precision_rule import HIGHEST
from gemmlab.dispatch.waves import Gpu, gpu_model, gpu_of_facts
from gemmlab.kernels.bound import BoundKernel
from gemmlab.ops.gemm_problem import LAYOUTS, GemmProblem
from gemmlab.timing.prebuild import prebuild
from quick_times import QuickTimes, Trial, cold_device, instances

SCHEMA = "gemmlab.regret/1"
LARGEST, MOST_STEPS = 16384, 2**38
"""The largest extent, and the most multiply-adds of a product."""
PADDING = 16
"""The most elements between the end of a row and the next one; every other product has none."""
QUICK_RUNS, RUNS, LONG_US = 3, 4, 5000.0
"""Runs of a trial at first, and in a turn; a run of `LONG_US` or more is a turn by itself."""
HOPELESS = 2.5
"""A first run this many times the best so far is the only one."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int)
    parser.add_argument("file", type=Path)
    parser.add_argument("--shapes", type=int, default=100)
    parser.add_argument("--largest", type=int, default=LARGEST, help="the largest extent")
    parser.add_argument("--precision", default=HIGHEST, choices=(HIGHEST, *PRECISIONS))
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
    """Return the record, which is written after each product. Raises `DeviceError` without the device, `UsageError` for
    a file of another draw.
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
    """Return the record as far as the file has it; `UsageError` for a file of another draw, device or table."""
    facts = {
        "schema": SCHEMA, "seed": options.seed, "precision": options.precision, "device": device.describe().name,
        "table": shipped_table().taken, "products": options.shapes, "largest": options.largest,
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


def say(text: str) -> None:
    print(f"{text:100.100}", end="\r", file=sys.stderr)


def draw(seed: int, count: int, largest: int = LARGEST) -> list[GemmProblem]:
    """Return `count` products, no two alike, the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 - a draw that anyone can repeat
    found: dict[str, GemmProblem] = {}
    while len(found) < count:
        m, n, k = (min(largest, int(math.exp(chance.uniform(0.0, math.log(largest + 1))))) for _ in range(3))
        if m * n * k > MOST_STEPS:
            continue
        layout, padded = chance.choice(LAYOUTS), chance.random() < 0.5
        more = {name: chance.randint(0, PADDING) if padded else 0 for name in ("lda", "ldb", "ldc")}
        packed = GemmProblem(m, n, k).with_layout(layout)
        problem = replace(packed, **{name: getattr(packed, name) + extra for name, extra in more.items()})
        found.setdefault(problem.label, problem)
    return list(found.values())


def regret_at(
    times: QuickTimes, problem: GemmProblem, choice: Choice, options: argparse.Namespace, shuffle: random.Random
) -> dict[str, Any]:
    """Return the line of one product. Raises `UsageError` where the chosen kernel does not run or is wrong."""
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
    """Return everything that a choice considered, the chosen one first, each once."""
    every = [Trial(choice.kernel, choice.config), *(Trial(one.kernel, one.config) for one in choice.considered)]
    return list({trial.key: trial for trial in every}.values())


def fields(trial: Trial) -> dict[str, Any]:
    return {"kernel": trial.kernel, "config": dict(trial.config)}


def title(trial: Trial) -> str:
    return " ".join([trial.kernel, *(f"{name}={value}" for name, value in trial.config.items())])


def gpu_of(device: Device) -> Gpu:
    """Return the device as a choice sees it."""
    info = device.describe()
    if device.family == "emulated":
        from gemmlab.devices.emulated import MODELS

        return gpu_model(MODELS[device.id.partition(":")[2]])
    return gpu_of_facts(info.name, info.facts)


def in_words(record: Mapping[str, Any]) -> str:
    """Return median and worst, and the products with the largest regret."""
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
