"""Fit trees to times of the library's likely kernels, with lightgbm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.dispatch.forest import NODES, UNIT, Forest
from likely_samples import Samples

TREES, LEAVES, RATE, FEWEST = 600, 127, 0.08, 10
"""The number of trees, the most leaves of one, the part of each that is added, the fewest times of a leaf."""
NEAR, FAR = 1.3, 2.0
"""Times up to `NEAR` times the least of their product have weight 1, up to `FAR` 1 / 2, others 1 / 5."""
CHOICE, SPREAD, MOST = 0.3, 0.05, 1.0
"""Trees also lower the regret of a choice by chance, in which a candidate is chosen the less often the longer it takes
by estimate: by a factor of e for each `SPREAD` of the logarithm. `CHOICE` is the weight of that regret; it counts as
`MOST` at most.
"""
_Floats = npt.NDArray[np.float64]


def fitted(known: Samples, names: Sequence[str], facts: dict[str, Any]) -> Forest:
    """Return the trees fitted to some times."""
    import lightgbm

    settings = {
        "objective": aim(known), "num_leaves": LEAVES, "learning_rate": RATE, "min_child_samples": FEWEST, "seed": 0,
        "num_threads": 1, "verbose": -1, "deterministic": True, "force_row_wise": True,
    }  # fmt: skip
    model = lightgbm.train(settings, lightgbm.Dataset(known.rows), TREES)
    return forest([tree["tree_structure"] for tree in model.dump_model()["tree_info"]], names, facts)


def aim(known: Samples) -> Callable[[_Floats, Any], tuple[_Floats, _Floats]]:
    """Return a function of the trees' sums that returns the first and second derivatives of what they minimise: the
    squares of errors of the logarithms, and the regrets of choices by chance.
    """
    product, count, logs = known.product, known.product.max() + 1, np.log(known.us)
    estimates, ratios = np.log(known.estimate_us), known.us / known.least_us
    weights = np.where(ratios < NEAR, 1.0, np.where(ratios < FAR, 0.5, 0.2))
    regrets = np.minimum(ratios - 1.0, MOST)

    def derivatives(sums: _Floats, _: Any) -> tuple[_Floats, _Floats]:
        guesses = estimates + sums
        least = np.full(count, np.inf)
        np.minimum.at(least, product, guesses)
        shares = np.exp((least[product] - guesses) / SPREAD)
        shares /= np.bincount(product, shares, count)[product]
        expected = np.bincount(product, shares * regrets, count)[product]
        by_chance = CHOICE * shares * (expected - regrets) / SPREAD
        return weights * (guesses - logs) + by_chance, weights + np.abs(by_chance) / 2

    return derivatives


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
