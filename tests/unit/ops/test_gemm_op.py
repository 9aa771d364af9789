from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab.core.errors import UsageError
from gemmlab.core.precision import FLOAT32, LARGEST, SMALLEST_NORMAL, TF32, UNIT_ROUNDOFF
from gemmlab.ops import gemm
from gemmlab.ops.catalog import find_op
from gemmlab.ops.gemm import ROUNDINGS, GemmOp, GemmProblem
from gemmlab.ops.gemm_problem import CONTENTS, LAYOUTS
from gemmlab.ops.op import Expected, Float32Array

OP = GemmOp()
scalars = st.floats(width=32)


def _build(
    shape: tuple[int, int, int], alpha: float, beta: float, extra: Sequence[int], layout: str, contents: str
) -> GemmProblem:
    plain = GemmProblem(*shape).with_layout(layout)
    return GemmProblem(*shape, alpha, beta, plain.lda + extra[0], plain.ldb + extra[1], plain.ldc + extra[2],
                       plain.trans_a, plain.trans_b, contents)  # fmt: skip


problems = st.builds(
    _build, st.tuples(*[st.integers(0, 9)] * 3), scalars, scalars, st.tuples(*[st.integers(0, 4)] * 3),
    st.sampled_from(LAYOUTS), st.sampled_from(CONTENTS),
)  # fmt: skip


def expect(problem: GemmProblem, a: Any, b: Any, c: Any = None) -> Expected:
    c = np.full((problem.m, problem.n), np.nan) if c is None else c
    arrays: dict[str, Float32Array] = {
        name: np.asarray(x, np.float32) for name, x in zip("abc", (a, b, c), strict=True)
    }
    return OP.reference(problem, arrays)["c"]


@given(problems)
def test_a_problem_survives_json(problem: GemmProblem) -> None:
    data = json.loads(json.dumps(problem.to_json(), allow_nan=False))
    assert repr(OP.problem_from_json(data)) == repr(problem)


@given(problems)
def test_operands_hold_their_shapes_and_scalars_their_types(problem: GemmProblem) -> None:
    a, b, c = OP.operands(problem)
    assert (a.rows, a.cols) == ((problem.k, problem.m) if problem.trans_a else (problem.m, problem.k))
    assert (b.rows, b.cols) == ((problem.n, problem.k) if problem.trans_b else (problem.k, problem.n))
    assert (c.rows, c.cols) == (problem.m, problem.n)
    for operand in (a, b, c):
        assert operand.ld >= max(1, operand.cols)
    assert c.role == ("out" if problem.beta == 0 else "inout")
    for name, value in OP.scalars(problem).items():
        assert type(value) is (np.float32 if name in ("alpha", "beta") else np.int64)
    contents = OP.fill(problem, np.random.default_rng(0))
    assert {o.name: (o.rows, o.cols) for o in (a, b, c)} == {name: x.shape for name, x in contents.items()}
    assert all(x.dtype == np.float32 and x.flags.c_contiguous for x in contents.values())


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"m": -1}, "m = -1"),
        ({"lda": 4}, "lda = 4 is shorter than a row of 5 elements"),
        ({"ldb": 3}, "ldb = 3"),
        ({"ldc": 1}, "ldc = 1"),
        ({"trans_a": True, "lda": 2}, "lda = 2 is shorter than a row of 3 elements (tn)"),
        ({"lda": -7}, "lda = -7"),
        ({"contents": "zeros"}, "contents is 'zeros'"),
    ],
)
def test_nonsense_is_refused(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError) as error:
        GemmProblem(**{"m": 3, "n": 4, "k": 5, **changes})
    assert named in str(error.value)


@pytest.mark.parametrize(
    "data",
    [
        {"m": 1, "n": 2},
        {"m": 1, "n": 2, "k": 3, "q": 4},
        {"m": "1", "n": 2, "k": 3},
        {"m": 1.5, "n": 2, "k": 3},
        {"m": True, "n": 2, "k": 3},
        {"m": 1, "n": 2, "k": 3, "alpha": "one"},
        {"m": 1, "n": 2, "k": 3, "trans_a": 1},
        {"m": 1, "n": 2, "k": 3, "contents": []},
    ],
)
def test_malformed_json_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="gemm problem"):
        OP.problem_from_json(data)


def test_labels_say_what_is_unusual() -> None:
    assert GemmProblem(1, 2, 3).label == "1x2x3"
    assert GemmProblem(1, 2, 3, 0.5, -1, 9, trans_b=True).label == "1x2x3 nt alpha=0.5 beta=-1 lda=9"
    assert GemmProblem(1, 2, 3, contents="huge").label == "1x2x3 huge"


def test_scalars_are_rounded_to_float32() -> None:
    assert GemmProblem(1, 1, 1, 0.1).alpha == float(np.float32(0.1))
    assert math.isinf(GemmProblem(1, 1, 1, 1e300).alpha)


def test_work_and_traffic() -> None:
    assert OP.flops(GemmProblem(2, 3, 5)) == 60
    assert OP.bytes_moved(GemmProblem(2, 3, 5)) == 4 * (10 + 15) + 4 * 6
    assert OP.bytes_moved(GemmProblem(2, 3, 5, beta=1)) == 4 * (10 + 15 + 6) + 4 * 6
    assert OP.bytes_moved(GemmProblem(2, 3, 5, alpha=0, beta=1)) == 4 * 6 + 4 * 6
    assert OP.dot_length(GemmProblem(2, 3, 5)) == 5


def test_the_bound_is_the_one_that_is_documented() -> None:
    a, b, c = np.array([[1, -2]]), np.array([[3], [4]]), np.array([[7]])
    got = expect(GemmProblem(1, 1, 2, alpha=-3, beta=2), a, b, c)
    assert got.values[0, 0] == -3 * (3 - 8) + 14
    u, steps = UNIT_ROUNDOFF, 2 + ROUNDINGS
    assert got.bound[0, 0] == pytest.approx(steps * u * (3 * 11 + 14) + steps * SMALLEST_NORMAL * 3, rel=1e-12)


@settings(deadline=None, max_examples=60)
@given(
    st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(0, 40)), st.integers(0, 2**32),
    st.sampled_from(LAYOUTS),
    st.floats(-4, 4, width=32), st.floats(-4, 4, width=32), st.sampled_from(("uniform", "wide", "subnormal")),
)  # fmt: skip
def test_any_order_of_summation_stays_within_the_bound(
    shape: tuple[int, int, int], seed: int, layout: str, alpha: float, beta: float, contents: str
) -> None:
    problem = GemmProblem(*shape, alpha, beta, contents=contents).with_layout(layout)
    rng = np.random.default_rng(seed)
    inputs = OP.fill(problem, rng)
    a = inputs["a"].T if problem.trans_a else inputs["a"]
    b = inputs["b"].T if problem.trans_b else inputs["b"]
    expected = OP.reference(problem, inputs)["c"]
    order = rng.permutation(problem.k)
    total = np.zeros(shape[:2], np.float32)
    for index in () if problem.without_product else order:
        total += np.multiply.outer(a[:, index], b[index])
    result = np.float32(problem.alpha) * total if not problem.without_product else total
    if problem.beta != 0:
        result += np.float32(problem.beta) * inputs["c"]
    assert (np.abs(result - expected.values) <= expected.bound).all()


def test_what_must_not_be_read_has_no_part_in_the_reference() -> None:
    nan = np.full((2, 2), np.nan)
    ones = np.ones((2, 2))
    assert (expect(GemmProblem(2, 2, 2), ones, ones, nan).values == 2).all()
    unread = expect(GemmProblem(2, 2, 2, alpha=0, beta=3), nan, nan, ones)
    assert (unread.values == 3).all()
    assert (expect(GemmProblem(2, 2, 2, alpha=0), nan, nan, nan).bound == 0).all()
    empty = expect(GemmProblem(2, 2, 0, beta=-1), np.empty((2, 0)), np.empty((0, 2)), ones)
    assert (empty.values == -1).all()


def test_fill_puts_nan_where_nothing_is_read() -> None:
    rng = np.random.default_rng(0)
    plain = OP.fill(GemmProblem(3, 4, 5), rng)
    assert np.isnan(plain["c"]).all()
    assert np.isfinite(plain["a"]).all()
    assert (plain["a"] != 0).all()
    scaled = OP.fill(GemmProblem(3, 4, 5, alpha=0, beta=1), rng)
    assert np.isnan(scaled["a"]).all()
    assert np.isnan(scaled["b"]).all()
    assert np.isfinite(scaled["c"]).all()


def test_special_values_travel_as_ieee_arithmetic_says() -> None:
    inf, nan = np.inf, np.nan
    a = np.array([[1, inf], [1, -inf], [1, nan], [inf, 1], [inf, inf], [1, 1]])
    b = np.array([[1, 1, -1], [1, 0, 2]])
    values = expect(GemmProblem(6, 3, 2), a, b).values
    expected = np.array(
        [[inf, nan, inf], [-inf, nan, -inf], [nan, nan, nan], [inf, inf, -inf], [inf, nan, nan], [2, 1, 1]]
    )
    np.testing.assert_array_equal(values, expected)
    assert np.isnan(expect(GemmProblem(1, 1, 1, alpha=nan), [[1]], [[1]]).values).all()
    assert np.isnan(expect(GemmProblem(1, 1, 1, beta=nan), [[1]], [[1]], [[1]]).values).all()
    assert np.isnan(expect(GemmProblem(1, 1, 0, beta=1), np.empty((1, 0)), np.empty((0, 1)), [[nan]]).values).all()


def test_overflow_is_demanded_only_where_every_order_overflows() -> None:
    big = LARGEST / 2
    one_sign = expect(GemmProblem(1, 1, 3), [[big] * 3], [[1], [1], [1]])
    assert one_sign.values[0, 0] == np.inf
    assert one_sign.bound[0, 0] == 0
    cancelling = expect(GemmProblem(1, 1, 4), [[big] * 4], [[1], [1], [-1], [-1]])
    assert np.isinf(cancelling.bound).all()
    ordinary = expect(GemmProblem(1, 1, 2), [[big / 2] * 2], [[1], [1]])
    assert np.isfinite(ordinary.bound).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cases_cover_the_contract(layout: str) -> None:
    cases = list(OP.cases((layout,), np.random.default_rng(0)))
    assert {case.layout for case in cases} == {layout}
    assert {case.contents for case in cases} == set(CONTENTS)
    for name in "mnk":
        extents = {getattr(case, name) for case in cases}
        assert extents >= {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257}
    assert {(case.alpha, case.beta) for case in cases} >= {(x, y) for x in (0, 1, -1, 0.5) for y in (0, 1, -1, 0.5)}
    assert any(math.isnan(case.alpha) for case in cases)
    assert any(math.isnan(case.beta) for case in cases)
    operands = [operand for case in cases for operand in OP.operands(case)]
    for name in "abc":
        assert any(o.name == name and o.ld > max(1, o.cols) for o in operands)
    assert sum(OP.flops(case) for case in cases) < 3e8
    assert repr(cases) == repr(list(OP.cases((layout,), np.random.default_rng(0))))


def test_full_is_a_larger_set_and_anything_else_is_refused() -> None:
    quick = len(list(OP.cases(("nn",), np.random.default_rng(0))))
    assert len(list(OP.cases(("nn",), np.random.default_rng(0), "full"))) > 2 * quick
    with pytest.raises(UsageError, match="quick or full"):
        list(OP.cases(("nn",), np.random.default_rng(0), "huge"))
    with pytest.raises(UsageError, match="layout is 'nx'"):
        list(OP.cases(("nx",), np.random.default_rng(0)))


def test_special_contents_let_infinity_meet_zero() -> None:
    problem = GemmProblem(37, 41, 29, contents="special")
    inputs = OP.fill(problem, np.random.default_rng(3))
    meet = np.isinf(inputs["a"]).astype(int) @ (inputs["b"] == 0) + (inputs["a"] == 0).astype(int) @ np.isinf(
        inputs["b"]
    )
    assert meet.any()
    assert np.isfinite(OP.reference(problem, inputs)["c"].values).mean() > 0.5


def test_operations_are_found_by_name() -> None:
    assert find_op("gemm").name == "gemm"
    with pytest.raises(UsageError, match="operations: gemm"):
        find_op("gem")


@pytest.mark.parametrize("precision", [FLOAT32, TF32])
@pytest.mark.parametrize("contents", ["uniform", "special", "huge"])
def test_blocks_of_rows_in_threads_change_no_bit(
    contents: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = GemmProblem(90, 11, 20, -2.5, 0.5, contents=contents)
    inputs = OP.fill(problem, np.random.default_rng(2))
    whole = OP.reference(problem, inputs, precision=precision)["c"]
    monkeypatch.setattr(gemm, "_BLOCK", 33)
    parts = OP.reference(problem, inputs, precision=precision)["c"]
    np.testing.assert_array_equal(parts.values, whole.values)
    np.testing.assert_array_equal(parts.bound, whole.bound)
    monkeypatch.setattr(gemm, "_FEWEST_BLOCKS", 99)
    in_turn = OP.reference(problem, inputs, precision=precision)["c"]
    np.testing.assert_array_equal(in_turn.bound, whole.bound)
