"""The reduction as an operation: its problems, its reference, its bound."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from gemmlab.core.errors import UsageError
from gemmlab.ops.catalog import all_ops, find_op
from gemmlab.ops.op import Float32Array
from gemmlab.ops.reduce import PIECE, ReduceOp, ReduceProblem
from gemmlab.ops.reduce_problem import CONTENTS, OPERATORS

OP = ReduceOp()
UNIT = 2.0**-24


def expected(x: Float32Array, operator: str = "sum", roundings: int | None = None) -> tuple[float, float]:
    found = OP.reference(ReduceProblem(x.size, operator), {"x": x.reshape(1, -1)}, roundings)["out"]
    assert found.values.shape == found.bound.shape == (1, 1)
    return float(found.values[0, 0]), float(found.bound[0, 0])


def floats(*values: float) -> Float32Array:
    return np.array(values, np.float32)


def test_it_is_an_operation_among_others() -> None:
    assert find_op("reduce").name == "reduce"
    assert [op.name for op in all_ops()] == ["gemm", "reduce", "batch", "sums", "group"]
    assert OP.unit == "GB/s"
    assert OP.flags == {"operator": (0, 1, 2)}


def test_sizes_go_beyond_what_a_matrix_has() -> None:
    assert [p.n for p in OP.parse_sizes("0,7,2^10,2^33,4:10:3")] == [0, 7, 1024, 2**33, 4, 10]
    assert [p.n for p in OP.parse_sizes("4:10:3")] == [4, 7, 10]
    with pytest.raises(UsageError, match=r"2\^41 is above the largest extent"):
        OP.parse_sizes("2^41")
    with pytest.raises(UsageError, match="2 extents, expected 1"):
        OP.parse_sizes("3x4")


def test_problems_travel_through_json() -> None:
    for problem in (ReduceProblem(5), ReduceProblem(2**33, "max", "nan")):
        assert OP.problem_from_json(json.loads(json.dumps(problem.to_json()))) == problem
    assert ReduceProblem(5).label == "5"
    assert ReduceProblem(5, "min", "wide").label == "5 min wide"
    for bad, said in (({}, "n is missing"), ({"n": 1.5}, "wrong kind"), ({"n": 1, "m": 2}, "unknown field 'm'"),
                      ({"n": -1}, "at least 0"), ({"n": 1, "operator": "mean"}, "one of sum, max, min"),
                      ({"n": 1, "contents": "zeros"}, "one of uniform")):  # fmt: skip
        with pytest.raises(UsageError, match=said):
            OP.problem_from_json(bad)


def test_what_it_moves_and_does() -> None:
    problem = ReduceProblem(1000, "max")
    assert (OP.flops(problem), OP.bytes_moved(problem), OP.work(problem)) == (1000, 4004, 4004)
    assert OP.scalars(problem) == {"n": 1000, "operator": 1}
    x, out = OP.operands(problem)
    assert (x.name, x.rows, x.cols, x.role) == ("x", 1, 1000, "in")
    assert (out.name, out.rows, out.cols, out.role) == ("out", 1, 1, "out")


def test_nothing_gives_what_changes_nothing() -> None:
    assert [expected(floats(), operator)[0] for operator in OPERATORS] == [0.0, -math.inf, math.inf]


def test_the_sum_is_exact_however_ill_conditioned() -> None:
    x = floats(1e30, 1.0, -1e30, 3e-5, 1e8, -1e8)
    value, bound = expected(x, roundings=3)
    assert value == math.fsum(x.astype(np.float64))
    assert bound == pytest.approx(3 * UNIT * 2e30, rel=1e-6)


def test_a_long_sum_is_as_good_as_exact() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal(2 * PIECE + 7).astype(np.float32)
    value, bound = expected(x, roundings=20)
    assert abs(value - math.fsum(x.astype(np.float64))) < 1e-6 * bound


def test_the_bound_follows_the_order_of_summation() -> None:
    x = np.ones(10_000, np.float32)
    assert expected(x, roundings=14)[1] == pytest.approx(14 * UNIT * 10_000, rel=1e-4)
    # Nothing said: as many roundings as the square root of the length, at least 64.
    assert expected(x)[1] == pytest.approx(100 * UNIT * 10_000, rel=1e-4)
    assert expected(x[:100])[1] == pytest.approx(64 * UNIT * 100, rel=1e-4)


def test_a_sum_in_one_long_chain_misses_the_bound_of_a_tree() -> None:
    x = np.full(1 << 20, 0.1, np.float32)
    value, bound = expected(x, roundings=20)
    chain = float(np.cumsum(x, dtype=np.float32)[-1])
    assert abs(chain - value) > bound
    assert abs(float(np.sum(x)) - value) <= bound


def test_special_values_come_out_as_ieee_says() -> None:
    inf, nan = math.inf, math.nan
    assert expected(floats(1, inf, 2)) == (inf, 0.0)
    assert expected(floats(-inf, 5), "max") == (5.0, 0.0)
    assert expected(floats(-inf, 5), "min") == (-inf, 0.0)
    for values in ((1, nan), (inf, -inf), (inf, nan)):
        assert math.isnan(expected(floats(*values))[0])
    assert math.isnan(expected(floats(1, nan, inf), "max")[0])
    assert math.isnan(expected(floats(1, nan, inf), "min")[0])


def test_overflow_is_certain_only_where_all_terms_have_one_sign() -> None:
    assert expected(floats(3e38, 3e38)) == (math.inf, 0.0)
    assert expected(floats(-3e38, -3e38)) == (-math.inf, 0.0)
    value, bound = expected(floats(3e38, 3e38, -3e38))
    assert (math.isfinite(value), bound) == (True, math.inf)
    # Some orders overflow to -Inf before they meet +Inf.
    assert expected(floats(math.inf, -3e38, -3e38)) == (math.inf, math.inf)


@pytest.mark.parametrize("contents", CONTENTS)
def test_contents_are_of_their_kind(contents: str) -> None:
    x = OP.fill(ReduceProblem(500, "sum", contents), np.random.default_rng(1))["x"]
    assert x.shape == (1, 500)
    assert x.dtype == np.float32
    assert len(np.unique(x)) > 100
    wide = x.astype(np.float64)
    match contents:
        case "nan":
            assert np.isnan(x).any()
        case "infinite":
            assert np.isposinf(x).any()
        case "opposed":
            assert np.isposinf(x).any()
            assert np.isneginf(x).any()
        case "positive":
            assert (x >= 0).all()
        case "subnormal":
            assert (np.abs(x) < 2**-126).all()
        case "cancelling":
            assert abs(wide.sum()) < 1e-3 * np.abs(wide).sum()
        case "huge":
            assert wide.sum() > 3.5e38
        case "rising":
            assert (np.diff(x[0]) == 1).all()
        case _:
            assert np.isfinite(x).all()


def test_cases_meet_every_edge() -> None:
    cases = list(OP.cases(("nn",), np.random.default_rng(0)))
    assert len(set(cases)) == len(cases)
    lengths = {case.n for case in cases}
    assert lengths >= {0, 1, 2, 3, 31, 33, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 4095, 4097}
    assert {(case.operator, case.contents) for case in cases} >= {(o, c) for o in OPERATORS for c in CONTENTS[1:]}
    assert all(any(case.n == n and case.operator == "sum" for case in cases) for n in lengths)
    assert len(list(OP.cases(("nn",), np.random.default_rng(0), "full"))) > 1.5 * len(cases)
    with pytest.raises(UsageError, match="quick or full"):
        list(OP.cases(("nn",), np.random.default_rng(0), "most"))
