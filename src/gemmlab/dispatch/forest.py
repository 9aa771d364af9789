"""A sum of regression trees over a few numbers, stored in a small file: the evaluation only.

Trees come from gradient boosting (Friedman, Greedy function approximation, 2001), as histogram-based libraries fit
them. All sums are of integers and all comparisons are exact, so the same numbers give the same result on any machine.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import RecordError

SCHEMA = "gemmlab.forest/1"
UNIT = 1e-5
"""The value that a leaf of 1 stands for: `Forest.leaves` are integers."""
NODES = ("feature", "cut", "left", "right", "roots", "leaves")
"""Names of the integer arrays of a `Forest`, as fields and in its file."""
_TOGETHER = 3
"""Levels of the trees that are walked before the paths that have ended are left out."""
_Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Trees over the numbers named `features`.

    A node compares a number with one of that number's `cuts`: left if the number is at most the cut. A child below 0 is
    the leaf `~child`.
    """

    features: tuple[str, ...]
    cuts: tuple[npt.NDArray[np.float64], ...]
    """For each feature, the values that nodes compare it with, in increasing order."""
    feature: _Ints
    """The number of the feature that a node looks at, for all nodes of all trees."""
    cut: _Ints
    """The number of the cut among those of the node's feature."""
    left: _Ints
    right: _Ints
    roots: _Ints
    """The root of each tree: the index of a node, or `~leaf` for a tree that is a single leaf."""
    leaves: _Ints
    facts: Mapping[str, Any]
    """Facts about the times that the trees were fitted to, as JSON values."""
    _counts: _Ints = field(init=False, repr=False)
    """The number of cuts of each feature."""
    _test: _Ints = field(init=False, repr=False)
    """For each node, the number of its cut among the cuts of all features. Leaves are further nodes, whose children are
    they themselves: paths of different lengths are walked together.
    """
    _children: _Ints = field(init=False, repr=False)
    """The right and the left child of each node."""
    _starts: _Ints = field(init=False, repr=False)
    """The root of each tree."""

    def __post_init__(self) -> None:
        counts, leaves = np.array([len(cuts) for cuts in self.cuts]), np.arange(len(self.leaves))
        right, left, starts = (
            np.where(nodes < 0, len(self.feature) + ~nodes, nodes) for nodes in (self.right, self.left, self.roots)
        )
        ends = len(self.feature) + leaves
        derived = {
            "_counts": counts, "_starts": starts,
            "_test": np.append((np.cumsum(counts) - counts)[self.feature] + self.cut, 0 * leaves),
            "_children": np.stack([np.append(right, ends), np.append(left, ends)], axis=1).ravel(),
        }  # fmt: skip
        for name, values in derived.items():
            object.__setattr__(self, name, values.astype(np.int32))

    def sums(self, rows: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the sum of the trees' leaves for each of `rows`, which have a value for each feature."""
        table = np.asarray(rows, np.float64).reshape(-1, len(self.features))
        # Each value is compared with each cut of its feature: faster than to compare where a node asks.
        goes_left = np.repeat(table, self._counts, axis=1) <= np.concatenate(self.cuts)
        answers, found = goes_left.ravel().view(np.int8), np.tile(self._starts, len(table))
        nodes = len(self.feature)
        at = np.flatnonzero(found < nodes)
        node, row = found.take(at), at // len(self.roots) * goes_left.shape[1]
        while at.size:
            for _ in range(_TOGETHER):
                node = self._children.take(2 * node + answers.take(self._test.take(node) + row))
            found[at] = node
            inner = np.flatnonzero(node < nodes)
            at, node, row = at.take(inner), node.take(inner), row.take(inner)
        leaves = self.leaves.take(found - nodes).reshape(len(table), len(self.roots))
        sums: npt.NDArray[np.float64] = leaves.sum(axis=1, dtype=np.int64).astype(np.float64)
        sums *= UNIT
        return sums

    def write(self, path: Path) -> None:
        """Write the file that `read_forest` reads."""
        head = {"schema": SCHEMA, "features": self.features, "facts": dict(self.facts)}
        np.savez_compressed(
            path, head=np.array(json.dumps(head)), cuts=np.concatenate(self.cuts),
            counts=np.array([len(cuts) for cuts in self.cuts], np.int32), feature=self.feature.astype(np.uint8),
            cut=self.cut.astype(np.uint16), left=self.left, right=self.right, roots=self.roots, leaves=self.leaves,
        )  # fmt: skip


def read_forest(path: Path) -> Forest:
    """Return the forest of a file. Raises `RecordError` for a file that is none."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            head = json.loads(str(file["head"]))
            if head["schema"] != SCHEMA:
                raise RecordError(f"{path}: schema {head['schema']!r}, not {SCHEMA}")
            ends = np.cumsum(file["counts"])[:-1]
            nodes = {name: file[name].astype(np.int32) for name in NODES}
            return Forest(tuple(head["features"]), tuple(np.split(file["cuts"], ends)), facts=head["facts"], **nodes)
    except (OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError, BadZipFile, zlib.error) as error:
        raise RecordError(f"{path} has no forest: {error}") from error
