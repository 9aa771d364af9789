"""`gemmlab.blas.sgemm` beside `scipy.linalg.blas.sgemm`: the same results, types, orders, places and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import gemmlab
from gemmlab import ArgumentTypeError, UsageError
from gemmlab.blas import sgemm

Array = npt.NDArray[Any]
A, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(3, 4)
KINDS = ("f4", "f8", "i4", "i1", "?", ">f4", "O")
LAYOUTS = ("C", "F", "every other row", "every other column", "upside down", "unaligned")


def laid_out(values: Array, layout: str) -> Array:
    rows, cols = values.shape
    if layout in ("C", "F"):
        return np.array(values, order="C" if layout == "C" else "F")
    if layout == "unaligned" and values.dtype != object:
        memory = np.zeros(values.nbytes + 1, np.uint8)[1:]
        place: Array = memory.view(values.dtype).reshape(cols, rows).T
    elif layout == "every other row":
        place = np.zeros((2 * rows, cols), values.dtype)[::2]
    elif layout == "every other column":
        place = np.zeros((cols * 2, rows), values.dtype).T[:, ::2]
    else:
        place = np.zeros((rows, cols), values.dtype, order="F")[::-1]
    place[...] = values
    return place


def test_it_is_at_the_top_of_the_package_too() -> None:
    assert gemmlab.sgemm is gemmlab.blas.sgemm is sgemm


@pytest.mark.in_turns(20)
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_every_type_order_flag_and_c_as_scipy_has_it(data: st.DataObject) -> None:
    """On small integers, so that every sum is exact."""
    blas = pytest.importorskip("scipy.linalg.blas")
    rng = np.random.default_rng(data.draw(st.integers(0, 99), "seed"))
    m, n, k = (data.draw(st.sampled_from((1, 2, 3, 7, 17, 40)), name) for name in "mnk")

    def operand(rows: int, cols: int, name: str) -> tuple[Array, Array]:
        """The same array twice, in memory of its own each."""
        values = rng.integers(-4, 5, (rows, cols)).astype(data.draw(st.sampled_from(KINDS), f"type of {name}"))
        layout = data.draw(st.sampled_from(LAYOUTS), f"layout of {name}")
        return laid_out(values, layout), laid_out(values, layout)

    trans_a, trans_b = (data.draw(st.integers(0, 2), name) for name in ("trans_a", "trans_b"))
    call: dict[str, Any] = {
        "alpha": data.draw(st.sampled_from((0, 1, -2.5, np.float32(2))), "alpha"),
        "a": operand(k, m, "a")[0] if trans_a else operand(m, k, "a")[0],
        "b": operand(n, k, "b")[0] if trans_b else operand(k, n, "b")[0],
        "beta": data.draw(st.sampled_from((0, 1.0, -0.5, None)), "beta"),
        "trans_a": trans_a,
        "trans_b": trans_b,
        "overwrite_c": data.draw(st.booleans(), "overwrite_c"),
    }
    ours, theirs = operand(m, n, "c") if data.draw(st.booleans(), "with c") else (None, None)
    expected, result = blas.sgemm(**call, c=theirs), sgemm(**call, c=ours)
    assert type(result) is np.ndarray
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    assert result.flags.f_contiguous
    assert np.array_equal(result, expected)
    if ours is not None and theirs is not None:
        assert (result is ours) == (expected is theirs)
        assert np.array_equal(ours, theirs)
        assert np.shares_memory(result, ours) == (result is ours)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    ("a", "b", "options"),
    [
        (A.tolist(), B.tolist(), {}),
        (np.ones(3), np.ones((1, 2)), {}),
        (np.ones(3), np.ones((3, 2)), {"trans_a": 1}),
        (np.ones((2, 3)), np.ones(3), {}),
        (np.float32(2), np.ones((1, 2)), {}),
        (3.0, 2, {}),
        (np.ones((1, 2, 3)), B, {}),
        (np.ones((2, 1, 3)), B, {}),
        (np.ones((2, 3, 1)), B, {}),
        (np.ones((2, 1, 1)), np.ones((1, 3)), {}),
        (np.ma.masked_array(A), B, {}),
        (A.T, B, {"trans_a": True}),
        (A.T, B, {"trans_a": np.int64(2)}),
        (A, B, {"beta": 2}),
        (A, B, {"beta": np.nan}),
        (A, B, {"beta": 2, "c": [[1] * 4] * 2, "overwrite_c": 1}),
        (A, B, {"c": np.full((2, 4), np.nan)}),
        (A, B, {"beta": np.nan, "c": np.ones((2, 4))}),
        (A, B[:, :1], {"beta": 2, "c": np.ones(2, np.float32)}),
        (A, B[:, :1], {"beta": 2, "c": np.ones(2, np.float32), "overwrite_c": 1}),
        (A[:1], B[:, :1], {"beta": 2, "c": np.float32(1)}),
        (np.ones((2, 0)), np.ones((0, 4)), {}),
        (np.ones((0, 3)), np.ones((3, 4)), {}),
        (np.ones((2, 3)), np.ones((3, 0)), {}),
        (np.full((1, 1), np.inf), np.zeros((1, 1)), {}),
    ],
)
def test_what_is_no_matrix_yet_becomes_one_as_in_scipy(a: Any, b: Any, options: dict[str, Any]) -> None:
    blas = pytest.importorskip("scipy.linalg.blas")
    given = options.get("c")
    theirs = {**options, "c": np.array(given)} if isinstance(given, np.ndarray) else options
    expected = blas.sgemm(1, a, b, **theirs)
    result = sgemm(1, a, b, **options)
    assert result.shape == expected.shape
    assert np.array_equal(result, expected, equal_nan=True)
    assert (result is options.get("c")) == (expected is theirs.get("c"))


@pytest.mark.parametrize(
    ("a", "b", "options", "error", "said"),
    [
        (A, A, {}, UsageError, r"k is 3 in a of shape \(2, 3\) with trans_a=0, and 2 in b of shape \(2, 3\)"),
        (A, B, {"trans_a": 1}, UsageError, "k is 2 in a .* with trans_a=1, and 3 in b"),
        (A, B, {"trans_a": 3}, UsageError, "trans_a is 3; it must be 0, 1 or 2"),
        (A, B, {"trans_b": -1}, UsageError, "trans_b is -1"),
        (A, B, {"trans_a": "T"}, ArgumentTypeError, "trans_a is 'T'"),
        (A, B, {"c": np.ones((4, 2))}, UsageError, r"c has shape \(4, 2\); the result has \(2, 4\)"),
        (A, B, {"c": np.ones(8)}, UsageError, r"c has shape \(8,\)"),
        ("abc", B, {}, ArgumentTypeError, "a cannot be cast to float32: could not convert"),
        (A, B, {"alpha": None}, ArgumentTypeError, "alpha is None, not a real number"),
    ],
)
def test_what_scipy_refuses_is_refused(
    a: Any, b: Any, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    call = {"alpha": 1, "a": a, "b": b, **options}
    with pytest.raises(error, match=said):
        sgemm(**call)
    blas = pytest.importorskip("scipy.linalg.blas")
    with pytest.raises(Exception, match=r"sgemm|dimension must be|could not convert"):
        blas.sgemm(**call)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"a": None}, "a is None, not an array"),
        ({"a": np.ones((2, 3, 4))}, r"a has shape \(2, 3, 4\); it must be a matrix"),
        ({"alpha": 1j}, "alpha is 1j, not a real number"),
        ({"beta": 10**400}, "beta is 1000"),
    ],
)
def test_what_scipy_makes_something_strange_of_is_refused(call: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        sgemm(**{"alpha": 1, "a": A, "b": B, **call})


def test_a_c_that_cannot_be_overwritten_is_left_alone() -> None:
    fixed = np.ones((2, 4), np.float32, order="F")
    fixed.flags.writeable = False
    result = sgemm(1, A, B, beta=2, c=fixed, overwrite_c=1)
    assert np.array_equal(result, A @ B + 2)
    assert (fixed == 1).all()
    shared = np.ones((4, 4), np.float32, order="F")
    assert (sgemm(1, shared, shared, c=shared, overwrite_c=1) == 4).all()
    assert (shared == 1).all(), "SciPy multiplies what it has overwritten"


def test_a_complex_operand_is_cast_with_numpys_warning() -> None:
    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
        assert np.array_equal(sgemm(1, A + 1j, B), A @ B)


def test_arguments_come_in_scipys_order() -> None:
    c = np.ones((4, 2), np.float32, order="F")
    result = sgemm(2, B, A, 3, c, 1, 2, 1)
    assert result is c
    assert np.array_equal(c, 2 * B.T @ A.T + 3)


def test_a_result_that_no_memory_holds() -> None:
    tall = as_strided(np.ones(1, np.float32), (2**40, 1), (0, 0))
    with pytest.raises(MemoryError):
        sgemm(1, tall, tall, trans_b=1)
    assert np.array_equal(sgemm(1, A, B), A @ B)


def test_the_package_has_it_as_an_attribute() -> None:
    assert gemmlab.blas.sgemm is sgemm
