"""Sums along axes as an operation: its problems, its reference, its bound."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gemmlab.core.errors import UsageError
from gemmlab.ops.catalog import find_op
from gemmlab.ops.sums_op import SumsOp
from gemmlab.ops.sums_problem import CONTENTS, SumsProblem, middle_axis

OP = SumsOp()
UNIT = 2.0**-24


def test_sizes_are_an_array_s_extents_around_the_axis_that_is_summed_along() -> None:
    assert find_op("sums").name == "sums"
    rows, columns, middle = OP.parse_sizes("64x1000x1,1x1000x64,7x5x3")
    assert rows == SumsProblem(((64, 1000, 1),), ((1000, 1),))
    assert columns == SumsProblem(((64, 1, 1),), ((1000, 64),))
    assert middle == SumsProblem(((3, 1, 1), (7, 15, 3)), ((5, 3),))
    assert (rows.across, columns.across, middle.across) == (True, False, False)
    assert [problem.label for problem in (rows, columns, middle)] == ["64x1000x1", "1x1000x64", "7x5x3"]
    assert (OP.flops(middle), OP.bytes_moved(middle), OP.work(middle)) == (105, 4 * (105 + 21), 504)
    assert OP.dot_length(middle) == 5


def test_sizes_state_steps_and_gaps() -> None:
    rows, columns, middle, gaps = found = OP.parse_sizes(
        "64x1000x1:step2,1x1000x64:step3:ld+5,7x5x3:ld+2,64x1000x1:ld+4"
    )
    assert rows == SumsProblem(((64, 2000, 1),), ((1000, 2),))
    assert columns == SumsProblem(((64, 3, 1),), ((1000, 197),))
    assert middle == SumsProblem(((3, 1, 1), (7, 25, 3)), ((5, 5),))
    assert gaps == SumsProblem(((64, 1004, 1),), ((1000, 1),))
    labels = ["64x1000x1 step2", "1x1000x64 step3 ld+5", "7x5x3 ld+2", "64x1000x1 ld+4"]
    assert [problem.label for problem in found] == labels
    # A step moves whole sectors of memory, but only the elements that are read count.
    assert OP.bytes_moved(rows) == 4 * (64_000 + 64)
    for text in ("4x4x4:step0", "4x4x4:nt", "4x4x4:ld4"):
        with pytest.raises(UsageError, match="is no option; options are step2 and ld"):
            OP.parse_sizes(text)


def test_elements_that_a_broadcast_repeats_are_moved_once() -> None:
    problem = SumsProblem(((5, 0, 1),), ((90, 1), (4, 0)))
    assert OP.bytes_moved(problem) == 4 * (90 + 5)
    assert (problem.results, problem.length, problem.span, problem.out_span) == (5, 360, 90, 5)


@pytest.mark.parametrize("scale", ["quick", "full"])
def test_problems_travel_through_json(scale: str) -> None:
    for problem in OP.cases(("nn",), np.random.default_rng(0), scale):
        assert OP.problem_from_json(json.loads(json.dumps(problem.to_json()))) == problem
        x, out = OP.operands(problem)
        assert (x.cols, out.cols) == (problem.span, problem.out_span)
        assert set(OP.scalars(problem)) == set(OP.scalars(middle_axis(1, 1, 1)))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"free": [], "terms": []}, "contents is missing"),
        ({"free": [], "terms": [], "contents": "uniform", "n": 3}, "unknown field 'n'"),
        ({"free": [[1.5, 1, 1]], "terms": [], "contents": "uniform"}, "no list of lists of whole numbers"),
        ({"free": [], "terms": [[3, 1]], "contents": 7}, "is no text"),
        ({"free": [[3, 1]], "terms": [], "contents": "uniform"}, "at most 4 axes of 3 numbers"),
        ({"free": [], "terms": [[-1, 1]], "contents": "uniform"}, "extents at least 0"),
        ({"free": [], "terms": [[2, 1]] * 4, "contents": "uniform"}, "at most 3 axes of 2 numbers"),
        ({"free": [[3, 1, 0]], "terms": [], "contents": "uniform"}, "results overlap"),
        ({"free": [], "terms": [], "contents": "zeros"}, "one of uniform"),
    ],
)
def test_what_makes_no_sense_is_refused(data: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        OP.problem_from_json(data)


def test_the_reference_follows_strides_and_gaps_hold_nan() -> None:
    problem = SumsProblem(((4, 3, 2), (2, 200, 9)), ((5, 13), (3, 70)), "rising")
    data = OP.fill(problem, np.random.default_rng(1))
    flat = data["x"].reshape(-1)
    found = OP.reference(problem, data, roundings=4)["out"]
    assert np.isnan(flat).sum() == flat.size - 4 * 2 * 5 * 3
    terms = [
        [flat[3 * i + 200 * j + 13 * a + 70 * b] for a in range(5) for b in range(3)]
        for j in range(2)
        for i in range(4)
    ]
    places = [2 * i + 9 * j for j in range(2) for i in range(4)]
    assert found.values[0, places].tolist() == [sum(map(float, each)) for each in terms]
    assert np.isnan(found.values).sum() == problem.out_span - 8
    assert found.bound[0, places] == pytest.approx([4 * UNIT * sum(map(float, each)) for each in terms], rel=1e-6)


@pytest.mark.parametrize("contents", CONTENTS)
def test_special_values_come_out_as_ieee_says(contents: str) -> None:
    problem = middle_axis(30, 20, 1, contents)
    data = OP.fill(problem, np.random.default_rng(1))
    with np.errstate(invalid="ignore"):
        plain = data["x"].reshape(30, 20).sum(axis=1, dtype=np.float64)
    found = OP.reference(problem, data)["out"]
    assert np.array_equal(found.values[0], plain, equal_nan=True)
    assert not found.bound[0][~np.isfinite(plain)].any()


def test_nothing_sums_to_zero() -> None:
    problem = middle_axis(3, 0, 2)
    assert OP.reference(problem, OP.fill(problem, np.random.default_rng(0)))["out"].values.tolist() == [[0.0] * 6]
    assert OP.operands(middle_axis(0, 3, 2))[1].cols == 0
