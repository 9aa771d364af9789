"""What each parameter matters, from times of configurations."""

from __future__ import annotations

import pytest

from gemmlab.plots.chart import render, specification
from gemmlab.plots.sensitivity_chart import sensitivity_chart
from gemmlab.results.sensitivity import Point, neighbours, sensitivity

BEST = {"BM": 64, "BK": 8}
POINTS = [Point({"BM": 128, "BK": 8}, 104.0), Point({"BM": 64, "BK": 16}, 99.0), Point({"BM": 32, "BK": 16}, 150.0)]


def test_changes_of_one_and_of_two_parameters() -> None:
    found = sensitivity("k at 64", Point(BEST, 100.0), POINTS)
    assert [change.text for change in found.single] == ["BM 64 -> 128 costs 4.0 %", "BK 8 -> 16 saves 1.0 %"]
    assert [change.text for change in found.pairs] == ["BM 64 -> 32, BK 8 -> 16 costs 50.0 %"]


def test_neighbours_differ_in_one_parameter() -> None:
    assert neighbours(BEST, [point.config for point in POINTS]) == [0, 1]


@pytest.mark.parametrize("predicted", [False, True])
def test_a_chart_of_all_changes(predicted: bool) -> None:
    spec = specification(sensitivity_chart(sensitivity("k", Point(BEST, 100.0), POINTS, predicted=predicted)))
    assert ("predicted" in str(spec["title"])) == predicted
    assert render(spec, ".svg").startswith(b"<svg")
