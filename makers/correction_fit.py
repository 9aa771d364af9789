"""Fit the trees that correct estimates of the library's kernels: `python correction_fit.py`, with lightgbm installed.

They are fitted to the times of `makers/likely_times.py`: to the logarithm of time / estimate, which depends on the
numbers of `dispatch/correction.py`. Products are divided into parts of which each is judged by trees that do not know
it. With `--judge FILE` other such times, which are in no part, judge the trees of all products.

`--check` fits nothing: the exit code is 1 if the file of trees was not made of these times, this table and these
numbers.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.dispatch.correction import features
from gemmlab.dispatch.forest import NODES, UNIT, Forest, read_forest
from gemmlab.dispatch.measurements import CORRECTION, Measurement, shipped_table
from gemmlab.dispatch.waves import PARTS, estimate, gpu_model, in_domain
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from likely_times import USUAL, read

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "h200"
TIMES = tuple(path for name in ("likely", "likely-near") if (path := RESULTS / f"{name}.jsonl.gz").exists())
"""The second file is of candidates that the trees fitted to the first one found likely."""
TREES, LEAVES, RATE, FEWEST = 400, 63, 0.08, 10
"""The number of trees, the most leaves of one, the part of each that is added, the fewest times of a leaf."""
FOLDS = 4
NEAR, FAR = 1.3, 2.0
"""Times up to `NEAR` times the least of their product have weight 1, up to `FAR` 1 / 2, others 1 / 5."""
AIM = 1.15
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
    return sorted({entry.kernel for entry in shipped_table().entries})


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
    head, lines = read(path)
    entries = {_key(entry.kernel, entry.config): entry for entry in shipped_table().entries}
    trials = [(entries.get(_key(kernel, config)), int(config.get(PARTS, 1))) for kernel, config in head["trials"]]
    for line in lines:
        problem = GemmOp().problem_from_json({**USUAL, **line["problem"]})
        times = [(*trials[int(number)], us) for number, us in line["us"].items()]
        yield problem, [(entry, parts, us) for entry, parts, us in times if entry and in_domain(entry, problem)]


def row_of(entry: Measurement, problem: GemmProblem, parts: int) -> tuple[dict[str, float], float]:
    """Return the numbers that trees look at, by name, and the estimate in microseconds."""
    table = shipped_table()
    where = gpu_model(table.gpu)
    found = estimate(entry, problem, where, table, parts=parts)
    return features(entry, parts, found, problem, where, kernels()), found.us


def _key(kernel: str, config: dict[str, int] | Any) -> tuple[str, str]:
    one = find_kernel(kernel)
    whole = one.configure({**config, **({PARTS: 1} if PARTS in one.params else {})})
    return one.id, json.dumps(whole, sort_keys=True)


def fitted(known: Samples, names: Sequence[str], facts: dict[str, Any]) -> Forest:
    """Return the trees fitted to some times."""
    import lightgbm

    ratios = known.us / known.least_us
    model = lightgbm.LGBMRegressor(
        n_estimators=TREES, num_leaves=LEAVES, learning_rate=RATE, min_child_samples=FEWEST, n_jobs=1, verbose=-1,
        deterministic=True, force_row_wise=True, random_state=0,
    )  # fmt: skip
    weights = np.where(ratios < NEAR, 1.0, np.where(ratios < FAR, 0.5, 0.2))
    model.fit(known.rows, np.log(known.us / known.estimate_us), sample_weight=weights)
    return forest([tree["tree_structure"] for tree in model.booster_.dump_model()["tree_info"]], names, facts)


def forest(trees: Sequence[dict[str, Any]], names: Sequence[str], facts: dict[str, Any]) -> Forest:
    """Return a forest of trees as lightgbm describes them in JSON values."""
    inner = [node for tree in trees for node in _nodes(tree) if "split_feature" in node]
    if any(node["decision_type"] != "<=" for node in inner):
        raise ValueError("a tree has nodes that compare otherwise than by <=")
    cuts = [sorted({node["threshold"] for node in inner if node["split_feature"] == at}) for at in range(len(names))]
    numbers = [{cut: number for number, cut in enumerate(each)} for each in cuts]
    arrays: dict[str, list[int]] = {name: [] for name in NODES}
    feature, left, right, leaves = (arrays[name] for name in ("feature", "left", "right", "leaves"))

    def added(node: dict[str, Any]) -> int:
        if "leaf_value" in node:
            leaves.append(round(node["leaf_value"] / UNIT))
            return ~(len(leaves) - 1)
        here = len(feature)
        feature.append(node["split_feature"])
        arrays["cut"].append(numbers[node["split_feature"]][node["threshold"]])
        left.append(0)
        right.append(0)
        left[here], right[here] = added(node["left_child"]), added(node["right_child"])
        return here

    arrays["roots"] = [added(tree) for tree in trees]
    return Forest(
        tuple(names), tuple(np.array(each, np.float64) for each in cuts), facts=facts,
        **{name: np.array(each, np.int32) for name, each in arrays.items()},
    )  # fmt: skip


def _nodes(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield tree
    for child in ("left_child", "right_child"):
        if child in tree:
            yield from _nodes(tree[child])


def origin() -> str:
    """Return a digest of what trees are made of: the times, and the figures that estimates depend on."""
    figures = [
        (entry.kernel, sorted(entry.config.items()), entry.domain, entry.figures) for entry in shipped_table().entries
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in TIMES) + repr(figures).encode()).hexdigest()[:16]


def feature_names() -> list[str]:
    return list(row_of(shipped_table().entries[0], GemmProblem(64, 64, 64), 1)[0])


def say(name: str, regrets: _Floats) -> None:
    middle, most, worst = np.quantile(regrets, (0.5, 0.99, 1.0))
    above = np.count_nonzero(regrets > AIM)
    print(
        f"{name}: {len(regrets)} products, median {middle:.3f}, 99 % {most:.3f}, worst {worst:.2f}, above {AIM} {above}"
    )


def main(arguments: Sequence[str]) -> int:
    """Fit and write the trees; with `--check` return 1 if the file is not of these times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", type=Path, action="append", default=[], metavar="FILE")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    if options.check:
        shipped = read_forest(CORRECTION)
        return int(shipped.facts["origin"] != origin() or list(shipped.features) != feature_names())
    known, names = samples(*TIMES), feature_names()
    facts = {"origin": origin(), "kernels": kernels(), "products": len(np.unique(known.product))}
    part = np.random.default_rng(0).integers(0, FOLDS, known.product.max() + 1)[known.product]
    errors = np.zeros(len(known.us))
    for fold in range(FOLDS):
        errors[part == fold] = fitted(known.of(part != fold), names, facts).sums(known.of(part == fold).rows)
    say("estimates", known.regrets(0 * errors))
    say("corrected, each part by the others", known.regrets(errors))
    whole = fitted(known, names, facts)
    for path in options.judge:
        other = samples(path)
        say(str(path), other.regrets(whole.sums(other.rows)))
    whole.write(CORRECTION)
    print(f"{CORRECTION}: {CORRECTION.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
