"""Times of `likely_times.py` with the numbers that trees look at, for `fitted_trees.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.precision import FLOAT32
from gemmlab.dispatch.correction import features
from gemmlab.dispatch.measurements import Measurement, shipped_table
from gemmlab.dispatch.waves import PARTS, estimate, gpu_model, in_domain
from gemmlab.ops.gemm_problem import GemmProblem
from likely_times import SCHEMA, problem_of, read
from quick_times import Trial

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "h200"
TIMES = tuple(sorted(RESULTS.glob("likely*.jsonl.gz")))
"""See `make corrections`."""
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """One time in a row: numbers about it, and the number of its product."""

    rows: _Floats
    product: npt.NDArray[np.int64]
    us: _Floats
    estimate_us: _Floats

    def of(self, which: npt.NDArray[np.bool_]) -> Samples:
        return Samples(self.rows[which], self.product[which], self.us[which], self.estimate_us[which])

    @property
    def least_us(self) -> _Floats:
        """For each row the least time of its product."""
        least = np.full(self.product.max() + 1, np.inf)
        np.minimum.at(least, self.product, self.us)
        return least[self.product]

    def regrets(self, errors: _Floats) -> _Floats:
        """Return the regret at each product of a choice by estimates of which `errors` are the logarithms."""
        order = np.lexsort((np.log(self.estimate_us) + errors, self.product))
        first = order[np.unique(self.product[order], return_index=True)[1]]
        return self.us[first] / self.least_us[first]


@cache
def kernels() -> list[str]:
    return sorted({entry.kernel for entry in entries().values()})


@cache
def entries() -> dict[tuple[Any, ...], Measurement]:
    """Return the entries of the table of choices by `Trial.without_parts`: those of float32, which trees correct."""
    return {
        Trial(entry.kernel, entry.config).without_parts: entry
        for entry in shipped_table().entries
        if entry.precision == FLOAT32
    }


def samples(*paths: Path, every: int = 1) -> Samples:
    """Return the times of files of `likely_times.py`, at each `every`-th product. Raises `UsageError` for others."""
    rows, product, us, estimates = [], [], [], []
    products = islice((one for path in paths for one in timed_products(path)), 0, None, every)
    for number, (problem, times) in enumerate(products):
        for entry, parts, time_us in times:
            row, estimate_us = row_of(entry, problem, parts)
            rows.append(list(row.values()))
            product.append(number)
            us.append(time_us)
            estimates.append(estimate_us)
    return Samples(np.array(rows), np.array(product), np.array(us), np.array(estimates))


def timed_products(path: Path) -> Iterator[tuple[GemmProblem, list[tuple[Measurement, int, float]]]]:
    """Yield each product with kernels of today's table that are for it, the number of parts, and microseconds."""
    head, lines = read(path, SCHEMA)
    known = entries()
    trials = [
        (known.get(Trial(kernel, config).of_today().without_parts), int(config.get(PARTS, 1)))
        for kernel, config in head["trials"]
    ]
    for line in lines:
        problem = problem_of(line["problem"])
        times = [(*trials[int(number)], us) for number, us in line["us"].items()]
        yield problem, [(entry, parts, us) for entry, parts, us in times if entry and in_domain(entry, problem)]


def row_of(entry: Measurement, problem: GemmProblem, parts: int) -> tuple[dict[str, float], float]:
    """Return the numbers that trees look at, by name, and the estimate in microseconds."""
    table = shipped_table()
    where = gpu_model(table.gpu)
    found = estimate(entry, problem, where, table, parts=parts)
    return features(entry, parts, found, problem, where, kernels()), found.us


def feature_names() -> list[str]:
    return list(row_of(shipped_table().entries[0], GemmProblem(64, 64, 64), 1)[0])
