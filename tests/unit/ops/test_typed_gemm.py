"""Types of numbers and the bounds of their products, against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gemmlab.core.elements import BFLOAT16, E4M3, E5M2, ELEMENTS, FLOAT16, FLOAT32, Element, element
from gemmlab.ops.catalog import find_op
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import WHOLE, GemmProblem, size_label
from gemmlab.ops.typed_gemm import TypedGemmOp

NAMES = (
    "gemm:float16", "gemm:bfloat16", "gemm:float64", "gemm:float16,float16,float32", "gemm:int8,int8,int32",
    "gemm:float8_e4m3fn,float8_e4m3fn,float32", "gemm:float8_e5m2,float8_e5m2,float16", "gemm:float8_e4m3fn",
)  # fmt: skip
each_op = pytest.mark.parametrize("name", NAMES)


@pytest.mark.parametrize("name", ELEMENTS)
def test_numbers_keep_their_values(name: str) -> None:
    kind = element(name)
    values = np.array([0.0, 1.0, 2.0, 64.0]) if kind.whole else np.array([0.0, -1.0, 0.5, 96.0, 2.0**-9])
    assert kind.widen(kind.stored(values)).tolist() == values.tolist()
    assert kind.stored(values).dtype == np.dtype(kind.storage)
    assert kind.stored(values).itemsize == kind.nbytes


def test_brain_floats_round_to_nearest_even() -> None:
    ulp = 2.0**-7
    values = np.array([1 + ulp / 2, 1 + 3 * ulp / 2, 1 + 0.51 * ulp, np.inf, -np.inf, np.nan, 3.4e38])
    found = BFLOAT16.widen(BFLOAT16.stored(values))
    assert found[:5].tolist() == [1.0, 1 + 2 * ulp, 1 + ulp, np.inf, -np.inf]
    assert np.isnan(found[5])
    assert np.isinf(found[6])
    assert float(np.finfo(np.float16).max) < FLOAT16.overflow
    assert BFLOAT16.overflow < FLOAT32.overflow


@pytest.mark.parametrize(("kind", "largest"), [(E4M3, 448.0), (E5M2, 57344.0)])
def test_floats_of_8_bits_round_to_nearest_even(kind: Element, largest: float) -> None:
    values = kind.widen(np.arange(256, dtype=np.uint8))
    finite = values[:128][np.isfinite(values[:128])]
    assert finite[-1] == largest
    assert finite[1] == kind.smallest
    assert kind.stored(values[~np.isnan(values)]).tolist() == np.flatnonzero(~np.isnan(values)).tolist()
    middle = (finite[1:] + finite[:-1]) / 2
    assert not (kind.stored(middle) % 2).any()
    assert kind.stored(np.nextafter(middle, 0)).tolist() == [*range(len(middle))]
    assert kind.stored(-np.nextafter(middle, np.inf)).tolist() == [*range(129, 129 + len(middle))]
    beyond = kind.widen(kind.stored(np.array([kind.overflow, -np.inf, np.nan])))
    assert not np.isfinite(beyond).any()
    assert np.isinf(beyond[:2]).all() == kind.infinite


def test_tensor_cores_may_cut_sums_of_8_bit_floats_off() -> None:
    op = find_op("gemm:float8_e4m3fn,float8_e4m3fn,float32")
    assert op.precisions[0] == "e8m13"
    p = GemmProblem(8, 8, 512)
    inputs = op.fill(p, np.random.default_rng(5))
    wide, narrow = (op.reference(p, inputs, precision=name)["c"].bound for name in ("", "float32"))
    assert (wide > 500 * narrow).all()
    whole = op.parse_sizes("8x8x4096")[0]
    inputs = op.fill(whole, np.random.default_rng(5))
    assert whole.contents == WHOLE
    assert (op.reference(whole, inputs)["c"].bound < 0.5).all()


def test_infinite_results_may_be_the_largest_float_of_8_bits() -> None:
    op = find_op("gemm:float8_e5m2")
    inputs = {name: np.full((1, 1), 0x7B, np.uint8) for name in "abc"} | {"b": np.full((1, 1), 0x7C, np.uint8)}
    assert np.isinf(op.reference(GemmProblem(1, 1, 1), inputs)["c"].bound).all()


def test_the_product_of_floats_is_the_operation_itself() -> None:
    assert type(GemmOp().typed({"a": FLOAT32, "b": FLOAT32, "c": FLOAT32})) is GemmOp
    assert isinstance(GemmOp().typed({"a": FLOAT16, "b": FLOAT16}), TypedGemmOp)


@each_op
def test_results_are_those_of_exact_arithmetic(name: str) -> None:
    op = find_op(name)
    rng = np.random.default_rng(1)
    kinds = {operand.name: operand.element for operand in op.operands(op.parse_sizes("4")[0])}
    for contents in ("uniform", WHOLE):
        p = GemmProblem(3, 4, 9, 2.0, -1.0, contents=contents, trans_a=True)
        inputs = op.fill(p, rng)
        a, b, c = (kinds[one].widen(inputs[one]) for one in "abc")
        expected = op.reference(p, inputs)["c"]
        for i in range(3):
            for j in range(4):
                exact = 2 * sum(Fraction(a[k, i]) * Fraction(b[k, j]) for k in range(9)) - Fraction(c[i, j])
                assert abs(exact - Fraction(expected.values[i, j])) <= Fraction(expected.bound[i, j])


@each_op
def test_cases_cover_the_contract_and_have_bounds(name: str) -> None:
    op = find_op(name)
    rng = np.random.default_rng(0)
    cases = list(op.cases(("nn", "tn"), rng))
    assert len({*cases}) == len(cases)
    assert sum(case.contents == WHOLE for case in cases) > len(cases) // 3
    for case in cases[::7]:
        inputs = op.fill(case, rng)
        for operand in op.operands(case):
            assert inputs[operand.name].shape == (operand.rows, operand.cols)
            assert inputs[operand.name].dtype == np.dtype(operand.element.storage)
        expected = op.reference(case, inputs)["c"]
        assert np.isfinite(expected.bound).all(), case.label


def test_a_missing_term_of_whole_numbers_is_out_of_bounds() -> None:
    op = find_op("gemm:bfloat16")
    p = op.parse_sizes("64x64x500")[0]
    assert p.contents == WHOLE
    inputs = op.fill(p, np.random.default_rng(3))
    expected = op.reference(p, inputs)["c"]
    a, b = BFLOAT16.widen(inputs["a"]), BFLOAT16.widen(inputs["b"])
    wrong = BFLOAT16.widen(BFLOAT16.stored(a[:, :-1] @ b[:-1]))
    right = BFLOAT16.widen(BFLOAT16.stored(a @ b))
    assert (np.abs(right - expected.values) <= expected.bound).all()
    assert (np.abs(wrong - expected.values) > expected.bound).any()


def test_whole_numbers_wrap_around() -> None:
    op = find_op("gemm:int32")
    p = GemmProblem(1, 1, 4)
    inputs = {"a": np.full((1, 4), 1 << 30, np.int32), "b": np.ones((4, 1), np.int32), "c": np.zeros((1, 1), np.int32)}
    assert op.reference(p, inputs)["c"].values.tolist() == [[0.0]]


def test_the_label_of_a_size_is_a_size() -> None:
    (problem,) = find_op("gemm:float8_e4m3fn,float8_e4m3fn,float32").parse_sizes("4096")
    assert problem.contents == WHOLE
    assert size_label(problem) == "4096x4096x4096"
    assert size_label(find_op("reduce").parse_sizes("4096")[0]) == find_op("reduce").parse_sizes("4096")[0].label
