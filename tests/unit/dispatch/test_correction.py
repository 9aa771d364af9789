"""Trees that correct estimates: their evaluation, their file, and what a choice does with them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import correction_fit as fit
import fitted_trees
import likely_samples
from choices_times import without_times
from gemmlab.core.errors import RecordError
from gemmlab.core.precision import FLOAT32
from gemmlab.dispatch.choice import choose
from gemmlab.dispatch.choice_values import Choice
from gemmlab.dispatch.correction import LIKELY
from gemmlab.dispatch.forest import UNIT, Forest, read_forest
from gemmlab.dispatch.measurements import CORRECTION, Table, shipped_table
from gemmlab.dispatch.waves import gpu_model
from gemmlab.ops.gemm_problem import GemmProblem

H200 = gpu_model("H200")
SHIPPED = shipped_table()
RULE = without_times(SHIPPED)
PLAIN = replace(RULE, correction=None)
NAMES = ("x", "y", "z")
VALUES = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6))

Node = tuple[int, float, "Node | int", "Node | int"] | int
"""A leaf, or the number of a feature, the largest value that goes left, and both children."""
TREES: st.SearchStrategy[Node] = st.recursive(
    st.integers(-20000, 20000), lambda below: st.tuples(st.integers(0, 2), VALUES, below, below), max_leaves=12
)


def walked(node: Node, row: list[float]) -> int:
    while not isinstance(node, int):
        feature, cut, left, right = node
        node = left if row[feature] <= cut else right
    return node


def as_lightgbm(node: Node) -> dict[str, object]:
    if isinstance(node, int):
        return {"leaf_value": node * UNIT}
    feature, cut, left, right = node
    return {"split_feature": feature, "threshold": cut, "decision_type": "<=", "left_child": as_lightgbm(left),
            "right_child": as_lightgbm(right)}  # fmt: skip


@given(st.data())
def test_a_forest_sums_the_leaves_that_a_walk_finds(data: st.DataObject) -> None:
    trees = data.draw(st.lists(TREES, min_size=1, max_size=4))
    rows = data.draw(st.lists(st.lists(VALUES, min_size=3, max_size=3), min_size=1, max_size=5))
    forest: Forest = fitted_trees.forest([as_lightgbm(tree) for tree in trees], NAMES, {})
    wanted = [sum(walked(tree, row) for tree in trees) for row in rows]
    assert (np.rint(forest.sums(rows) / UNIT) == wanted).all()


def test_a_forest_comes_back_from_its_file(tmp_path: Path) -> None:
    forest: Forest = fitted_trees.forest([as_lightgbm((1, 2.5, -7, (0, -1.0, 3, 11)))], NAMES, {"products": 5})
    forest.write(tmp_path / "some.npz")
    again = read_forest(tmp_path / "some.npz")
    rows = [[0.0, 2.5, 0.0], [-1.0, 2.6, 0.0], [0.0, 9.0, 1.0]]
    assert again.facts == {"products": 5}
    assert again.features == NAMES
    assert again.sums(rows).tolist() == forest.sums(rows).tolist() == pytest.approx([-7 * UNIT, 3 * UNIT, 11 * UNIT])


def test_other_files_are_refused(tmp_path: Path) -> None:
    shipped = CORRECTION.read_bytes()
    # No block of compressed data begins with bits that are all set.
    packed = shipped[:80] + b"\xff" * 200 + shipped[280:]
    # The method of compression, in the first entry of the archive's directory.
    method = shipped.index(b"PK\1\2") + 10
    unknown = shipped[:method] + b"\x63" + shipped[method + 1 :]
    files = {"text.npz": b"no archive", "cut.npz": shipped[:5000], "packed.npz": packed, "method.npz": unknown}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(RecordError, match=f"{name} has no forest"):
            read_forest(tmp_path / name)
    np.savez(tmp_path / "other.npz", head=np.array('{"schema": "other/1"}'))
    with pytest.raises(RecordError, match=r"schema 'other/1', not gemmlab\.forest/1"):
        read_forest(tmp_path / "other.npz")
    with pytest.raises(RecordError, match="absent"):
        read_forest(tmp_path / "absent.npz")


def test_the_shipped_trees_are_those_of_the_records() -> None:
    assert fit.main(["--check"]) == 0, "run makers/correction_fit.py: the times, the table or the features have changed"


def test_the_likely_candidates_are_corrected_and_come_first() -> None:
    for problem in (GemmProblem(35, 8457, 2560), GemmProblem(700, 2000, 300), GemmProblem(1, 5000, 900)):
        raw, found = choice(problem, PLAIN), choice(problem, RULE)
        likely = {key(one): one.us for one in raw.considered[:LIKELY]}
        assert {key(one) for one in found.considered if one.corrected} == set(likely)
        assert all(one.corrected for one in found.considered[: len(likely)])
        errors = [abs(math.log(one.us / likely[key(one)])) for one in found.considered[: len(likely)]]
        assert 0.0 < max(errors) < math.log(20.0)
        assert "corrected by times of" in found.reason
        assert "corrected" not in raw.reason


def test_times_that_were_measured_are_not_corrected() -> None:
    found = choice(GemmProblem(512, 512, 512), SHIPPED)
    assert found.considered[0].measured
    assert not any(one.measured and one.corrected for one in found.considered)


def test_a_gpu_of_another_kind_gets_plain_estimates() -> None:
    found = choose(GemmProblem(700, 2000, 300), gpu_model("A100"), SHIPPED, precision="highest")
    assert not any(one.corrected for one in found.considered)


def test_lower_precisions_are_not_corrected_and_compete() -> None:
    found = choose(GemmProblem(4100, 4100, 4100), H200, RULE, precision="tf32")
    assert found.considered[0].precision != FLOAT32
    assert all(one.precision == FLOAT32 for one in found.considered if one.corrected)


@pytest.mark.in_turns(20)
def test_the_corrected_rule_chooses_better_at_the_products_that_were_timed() -> None:
    samples = likely_samples.samples(likely_samples.RESULTS / "likely.jsonl.gz", every=23)
    plain, corrected = samples.regrets(0 * samples.us), samples.regrets(read_forest(CORRECTION).sums(samples.rows))
    assert np.median(corrected) <= 1.01
    assert np.mean(corrected > 1.15) < 0.01
    assert np.mean(plain > 1.15) > 0.05


def choice(problem: GemmProblem, table: Table) -> Choice:
    return choose(problem, H200, table, precision="highest")


def key(one: object) -> tuple[object, ...]:
    return one.kernel, *sorted(one.config.items())  # type: ignore[attr-defined]
