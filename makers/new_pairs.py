"""Judge the model by pairs of configurations that were never measured before.

`python makers/new_pairs.py FILE --seed SEED` draws configurations that no record of the H200 and no other such file
has, and stores the model's predictions of their times: commit these first. `python makers/new_pairs.py FILE --time`
then times them on the GPU, which takes less than a minute, and stores the times beside the predictions. It prints for
how many pairs the model named the faster one, and the median error of the ratios of times.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from gemmlab.analysis.model.changes import LEAST
from gemmlab.analysis.model.kernel_study import loads_of, study
from gemmlab.analysis.model.predict import Model
from gemmlab.core import gpu
from gemmlab.kernels.aliases import read_record
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.catalog import find_op
from gemmlab.timing.prebuild import prebuild
from quick_times import QuickTimes, Trial, cold_device, instances

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
PAIRS = RESULTS / "pairs-h200.json"
ARCH, GPU = "sm_90", gpu.model("H200")
SIZES, EACH, GROUPS = (1536, 2560, 3072), 3, 17
"""Extents of the square products; the number of configurations in a group, which are of one rung and have one extent;
the number of groups. There are 51 pairs in all.
"""
REPEATS = 11


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=PAIRS)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--time", action="store_true", help="time what was predicted")
    options = parser.parse_args()
    rows = timed(options.file) if options.time else predicted(options.seed, options.file)
    options.file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if all("measured_us" in row for row in rows):
        sys.stderr.write(f"{outcome(rows)}\n")


def predicted(seed: int, file: Path) -> list[dict[str, Any]]:
    """Draw the configurations and return a row for each, with its predicted time in microseconds. Those of other files
    of pairs than `file` are not drawn again.
    """
    op, rng, rows = find_op("gemm"), np.random.default_rng(seed), list[dict[str, Any]]()
    measured = _measured(file)
    names = list(measured)
    for number in range(GROUPS):
        name, size = names[number % len(names)], SIZES[number % len(SIZES)]
        kernel, (problem,) = find_kernel(name), op.parse_sizes(str(size))
        taken = [row["config"] for row in rows if row["kernel"] == name]
        new = [
            dict(config) for config in kernel.configurations()
            if dict(config) not in measured[name] and dict(config) not in taken
            and not kernel.refusal(kernel.configure(config), op.scalars(problem))
        ]  # fmt: skip
        for place in sorted(rng.choice(len(new), EACH, replace=False).tolist()):
            known = study(kernel, ARCH, new[place])
            time = Model(known, GPU).predict(loads_of(kernel, new[place], problem), op.bytes_moved(problem))
            rows.append({
                "kernel": name, "config": new[place], "size": size, "code_sha256": known.digest,
                "predicted_us": float(f"{time.time_us:.5g}"),
            })  # fmt: skip
            sys.stderr.write(f"{rows[-1]}\n")
    return rows


def timed(file: Path) -> list[dict[str, Any]]:
    """Return the stored predictions with times measured now: medians of `REPEATS` runs, cold caches."""
    rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    op = find_op("gemm")
    problems = {row["size"]: op.parse_sizes(str(row["size"]))[0] for row in rows}
    trials = [(row, problems[row["size"]], Trial(row["kernel"], row["config"])) for row in rows]
    device = cold_device("cuda")
    prebuild((code for _, problem, trial in trials for code in instances([problem], [trial])), device, compiled=True)
    times = QuickTimes(device, list(problems.values()))
    for row, problem, trial in trials:
        if not times.right(problem, trial):
            raise SystemExit(f"{trial.kernel} {dict(trial.config)} is wrong at {problem.label}")
        bound = times.bound(problem, trial)
        row["measured_us"] = float(f"{median(bound.time(REPEATS)):.5g}")
        row["same_code"] = bound.loaded.artifact.digest == row["code_sha256"]
    return rows


def outcome(rows: list[dict[str, Any]]) -> str:
    """Return a sentence on how well the ratios of times were predicted, for the pairs whose measured times differ by at
    least a ratio of `LEAST`.
    """
    ratios = []
    for one, two in combinations(rows, 2):
        if (one["kernel"], one["size"]) != (two["kernel"], two["size"]):
            continue
        faster, slower = sorted((one, two), key=lambda row: float(row["measured_us"]))
        measured = slower["measured_us"] / faster["measured_us"]
        if measured >= LEAST:
            ratios.append((measured, slower["predicted_us"] / faster["predicted_us"]))
    right = sum(guess > 1 for _, guess in ratios)
    error = median(abs(guess / measured - 1) for measured, guess in ratios)
    return f"{len(ratios)} pairs differ by {LEAST - 1:.0%} or more: {right} signs right, median error {error:.1%}"


def _measured(file: Path) -> Mapping[str, list[dict[str, int]]]:
    found: dict[str, list[dict[str, int]]] = {}
    for result in read_record(RESULTS / "h200" / "configs.json", notice=False).results:
        if result.facts.get("role") == "rung":
            name = result.contestant.removeprefix("kernel:").partition("[")[0]
            found.setdefault(name, []).append(dict(result.facts["config"]))
    for other in set(RESULTS.glob("pairs-h200*.json")) - {file.resolve()}:
        for row in json.loads(other.read_text(encoding="utf-8")):
            found.setdefault(row["kernel"], []).append(row["config"])
    return found


if __name__ == "__main__":
    main()
