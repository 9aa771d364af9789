"""Find random products at which the choice is in doubt: trees fitted to halves of the known times choose differently.

    python makers/doubtful_products.py 20261203:60000 --keep 8000 doubtful.jsonl.gz
    python makers/likely_times.py benchmarks/results/h200/likely-doubtful.jsonl.gz --products doubtful.jsonl.gz

More times teach most there (query by committee: Seung, Opper and Sompolinsky, 1992). It needs lightgbm and no GPU.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from choices_times import without_times
from fitted_trees import fitted
from gemmlab.core.errors import GemmlabError
from gemmlab.dispatch.choice import choose
from gemmlab.dispatch.correction import LIKELY
from gemmlab.dispatch.forest import Forest, read_forest
from gemmlab.dispatch.measurements import shipped_table
from gemmlab.dispatch.precision_rule import HIGHEST
from gemmlab.dispatch.waves import PARTS, gpu_model
from gemmlab.ops.gemm_problem import GemmProblem
from likely_samples import TIMES, entries, feature_names, kernels, row_of, samples
from likely_times import PRODUCTS, plain
from quick_times import Trial
from random_products import draw
from sweep_request import seed_and_count

MEMBERS = 4
"""The number of halves of the known times; two halves have about a quarter of the products in common."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("random", metavar="SEED:COUNT", help="the products to look at, as regret.py draws them")
    parser.add_argument("file", type=Path)
    parser.add_argument("--keep", type=int, default=8000, help="the number of products to write")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    try:
        problems = draw(*seed_and_count(options.random))
    except GemmlabError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    with TemporaryDirectory() as folder:
        write_committee(Path(folder))
        doubts = doubts_of(problems, folder, options.processes)
    most = np.argsort(-doubts, kind="stable")[: options.keep]
    title = f"the {len(most)} most doubtful of {options.random}"
    with gzip.open(options.file, "wt", encoding="utf-8") as file:
        for line in ({"schema": PRODUCTS, "title": title}, *(plain(problems[at]) for at in most)):
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
    print(f"{title}: doubts {doubts[most[0]]:.3f} to {doubts[most[-1]]:.3f}")
    return 0


def write_committee(folder: Path) -> None:
    """Write a file of trees for each member, which knows a random half of the products."""
    known, chance = samples(*TIMES), np.random.default_rng(0)
    facts = {"kernels": kernels()}
    for member in range(MEMBERS):
        half = chance.random(known.product.max() + 1)[known.product] < 0.5
        fitted(known.of(half), feature_names(), facts).write(folder / f"{member}.npz")


def doubts_of(problems: Sequence[GemmProblem], folder: str, processes: int) -> npt.NDArray[np.float64]:
    """Return the doubt at each product."""
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        return np.array(list(pool.map(doubt, problems, repeat(folder), chunksize=100)))


@cache
def committee(folder: str) -> list[Forest]:
    return [read_forest(path) for path in sorted(Path(folder).glob("*.npz"))]


def doubt(problem: GemmProblem, folder: str) -> float:
    """Return how many times as long as its own choice another member's choice takes, as a member estimates it; of all
    pairs the most.
    """
    rule = replace(without_times(shipped_table()), correction=None)
    known, rows, logs = entries(), [], []
    for one in choose(problem, gpu_model(rule.gpu), rule, precision=HIGHEST).considered[:LIKELY]:
        row, us = row_of(known[Trial(one.kernel, one.config).without_parts], problem, one.config.get(PARTS, 1))
        rows.append(list(row.values()))
        logs.append(math.log(us))
    times = np.array([logs + trees.sums(rows) for trees in committee(folder)])
    choices = times.argmin(axis=1)
    return float(np.exp((times[:, choices] - times.min(axis=1, keepdims=True)).max()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
