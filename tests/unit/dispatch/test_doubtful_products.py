"""The maker of lists of products at which trees fitted to halves of the times disagree, and what trees minimise."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

import doubtful_products
import fitted_trees
import likely_samples
from gemmlab.dispatch.forest import Forest
from gemmlab.ops.gemm_problem import GemmProblem
from likely_times import PRODUCTS, asked_for, read


def trees(feature: str, cut: float, log: float) -> Forest:
    """Return one tree that adds `log` to the logarithms of estimates whose `feature` is above `cut`."""
    names = likely_samples.feature_names()
    node = {
        "split_feature": names.index(feature), "threshold": cut, "decision_type": "<=",
        "left_child": {"leaf_value": 0.0}, "right_child": {"leaf_value": log},
    }  # fmt: skip
    return fitted_trees.forest([node], names, {})


def test_members_that_agree_leave_no_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = GemmProblem(700, 2000, 300)
    monkeypatch.setattr(doubtful_products, "committee", lambda _: [trees("m", 5.0, 0.5), trees("m", 1e6, 0.5)])
    assert doubtful_products.doubt(problem, "") == 1.0


def test_the_doubt_is_the_loss_by_the_other_members_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = GemmProblem(4000, 4000, 300)
    # By the second member tiles of more than 64 rows take e times as long.
    members = [trees("BM", 1e6, 0.0), trees("BM", 64.0, 1.0)]
    monkeypatch.setattr(doubtful_products, "committee", lambda _: members)
    found = doubtful_products.doubt(problem, "")
    monkeypatch.setattr(doubtful_products, "committee", lambda _: members[::-1])
    assert doubtful_products.doubt(problem, "") == found
    assert 2.0 < found < np.e


def test_the_most_doubtful_products_are_those_to_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doubtful_products, "write_committee", lambda _: None)
    monkeypatch.setattr(
        doubtful_products, "doubts_of", lambda problems, *_: np.array([1.0 * one.m for one in problems])
    )
    file = tmp_path / "some.jsonl.gz"
    assert doubtful_products.main(["5:20", str(file), "--keep", "4"]) == 0
    assert "the 4 most doubtful of 5:20" in capsys.readouterr().out
    head, lines = read(file, PRODUCTS)
    title, problems = asked_for(Namespace(random=None, products=file))
    assert title == head["title"]
    assert len(problems) == len(lines) == 4
    assert [one.m for one in problems] == sorted((one.m for one in problems), reverse=True)
    assert all("alpha" not in json.dumps(line) for line in lines)
    assert doubtful_products.main(["five", str(file)]) == 2
    assert "write SEED:COUNT" in capsys.readouterr().err


def test_derivatives_are_those_of_errors_and_expected_regret() -> None:
    chance = np.random.default_rng(0)
    product = np.repeat(np.arange(3), 4)
    known = likely_samples.Samples(
        np.zeros((12, 1)), product, np.exp(chance.normal(2.0, 0.1, 12)), np.exp(chance.normal(2.0, 0.1, 12))
    )
    ratios = known.us / known.least_us

    def lost(sums: np.ndarray) -> float:
        logs = np.log(known.estimate_us) + sums
        shares = np.exp(-logs / fitted_trees.SPREAD)
        shares /= np.bincount(product, shares)[product]
        weights = np.where(ratios < fitted_trees.NEAR, 1.0, 0.5)
        errors = (weights * (logs - np.log(known.us)) ** 2).sum() / 2
        return float(errors + fitted_trees.CHOICE * (shares * (ratios - 1.0)).sum())

    assert ratios.max() < fitted_trees.FAR
    at = chance.normal(0.0, 0.05, 12)
    first, second = fitted_trees.aim(known)(at, None)
    steps = 1e-6 * np.eye(12)
    slopes = [(lost(at + step) - lost(at - step)) / 2e-6 for step in steps]
    assert first == pytest.approx(slopes, abs=1e-6)
    assert (second >= 0.5).all()
