"""What `gemmlab.gemm` says to input that it cannot use. Each is tried before and after the compiled entry is there."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numpy.lib.stride_tricks import as_strided

import gemmlab
from gemmlab import ArgumentTypeError, UsageError, api, gemm

Array = npt.NDArray[np.float32]
A = np.ones((4, 5), np.float32)
B = np.ones((5, 6), np.float32)


class Pretender:
    """Has the attributes of an array, and is none."""

    shape = (4, 5)
    ndim = 2
    dtype = np.dtype(np.float32)


@pytest.fixture(params=["compiled entry", "general path"], autouse=True)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways through the library call judge the same."""
    gemm(A, B)
    if request.param == "general path":
        monkeypatch.setattr(api, "_entry", None)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([[1.0] * 5] * 4, "a is builtins.list, not a NumPy array"),
        (3.0, "a is builtins.float"),
        (None, "a is builtins.NoneType"),
        (Pretender(), "a is .*Pretender"),
        (np.ones((4, 5)), "a has dtype float64"),
        (np.ones((4, 5), np.float16), "a has dtype float16"),
        (np.ones((4, 5), np.int32), "a has dtype int32"),
        (np.ones((4, 5), np.complex64), "a has dtype complex64"),
        (np.ones((4, 5), ">f4"), "a has dtype >f4, not native float32"),
        (np.ones((4, 5), object), "a has dtype object"),
        (np.ones((4, 5), [("x", np.float32)]), "a has dtype .*x"),
        (np.float32(1), "a is numpy.float32, not a NumPy array"),
        (np.ma.masked_array(np.ones((4, 5), np.float32), mask=True), r"a is a masked array.*\.filled\(0\)"),
    ],
)
def test_what_is_no_float32_array_is_named(value: Any, said: str) -> None:
    with pytest.raises(ArgumentTypeError, match=said):
        gemm(value, B)
    with pytest.raises(TypeError, match=re.sub("^a ", "b ", said)):
        gemm(B.T, value, trans_b=True)
    if value is None:
        return
    with pytest.raises(ArgumentTypeError, match=re.sub("^a ", "c ", said)):
        gemm(A, B, c=value, beta=1.0)
    with pytest.raises(ArgumentTypeError, match=re.sub("^a ", "out ", said)):
        gemm(A, B, out=value)


def test_an_output_of_another_dtype_is_not_to_be_converted() -> None:
    # The result would go into the copy.
    with pytest.raises(ArgumentTypeError, match=r"out has dtype float64.*numpy\.empty\(out\.shape, numpy\.float32\)"):
        gemm(A, B, out=np.empty((4, 6)))


@pytest.mark.parametrize(
    ("a", "b", "options", "said"),
    [
        (A, A, {}, r"op\(a\) of shape \(4, 5\) and op\(b\) of shape \(4, 5\) do not fit: k is 5 .* and 4"),
        (A, B, {"trans_a": True}, r"k is 4 on the left and 5 on the right"),
        (A, B, {"trans_b": True}, r"k is 5 on the left and 6 on the right"),
        (A[0], B[0], {}, "k is 5 on the left and 6"),
        (
            np.ones((3, 4, 5), np.float32),
            np.ones((2, 5, 6), np.float32),
            {},
            r"leading axes \(3,\) of a and \(2,\) of b",
        ),
        (np.ones((), np.float32), B, {}, "a is a scalar; it must have at least one axis"),
        (A, B, {"beta": 2.0}, r"beta is 2\.0 but there is no c"),
        (A, B, {"beta": float("nan")}, "no c to scale"),
        (A, B, {"beta": 1.0, "out": np.ones((4, 6), np.float32)}, "no c to scale"),
        (A, B, {"beta": 1.0, "c": np.ones((4, 5), np.float32)}, r"c of shape \(4, 5\) does not broadcast .* \(4, 6\)"),
        (A, B, {"c": np.ones((2, 4, 6), np.float32)}, "does not broadcast"),
        (A, B, {"out": np.ones((6, 4), np.float32)}, r"out has shape \(6, 4\); the result has \(4, 6\)"),
        (A, B, {"out": np.ones((1, 4, 6), np.float32)}, "out has shape"),
        (A, B, {"threads": 0}, "threads is 0; it must be at least 1"),
        (A, B, {"threads": -3}, "threads is -3"),
        (A, B, {"threads": -(10**30)}, "at least 1"),
    ],
)
def test_what_does_not_fit_is_explained(a: Any, b: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        gemm(a, b, **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"threads": "2"}, "threads is '2', not a whole number"),
        ({"threads": 2.0}, r"threads is 2\.0, not a whole number"),
        ({"threads": True}, "threads is True, not a whole number"),
        ({"threads": False}, "threads is False, not a whole number"),
        ({"alpha": "2"}, "alpha is '2', not a real number"),
        ({"alpha": None}, "alpha is None"),
        ({"alpha": 1j}, "alpha is 1j"),
        ({"alpha": 10**400}, "alpha is 1000"),
        ({"beta": b"1", "c": B}, "beta is b'1'"),
        ({"beta": np.ones(2), "c": B}, "beta is array"),
    ],
)
def test_a_scalar_of_the_wrong_kind_is_a_type_error(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentTypeError, match=said) as caught:
        gemm(A, B, **options)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("threads", [1, 2, 1000, 10**30, np.int64(3)])
def test_any_whole_number_of_threads_from_1_up_will_do(threads: int) -> None:
    a = np.ones((130, 140), np.float32)
    assert (gemm(a, a.T, threads=threads) == 140).all()


def test_a_read_only_out_is_refused_and_left_alone() -> None:
    out = np.zeros((4, 6), np.float32)
    out.flags.writeable = False
    with pytest.raises(UsageError, match="out is read-only"):
        gemm(A, B, out=out)
    with pytest.raises(UsageError, match="out is read-only"):
        gemm(A, B, beta=1.0, c=out, out=out)
    assert not out.any()


def square() -> Array:
    return np.ones((6, 6), np.float32)


def overlaps() -> dict[str, tuple[str, dict[str, Any]]]:
    """By name: the operand that shares elements with out, and the call."""
    mine, line = square(), np.ones(71, np.float32)
    first, second, last = line[:36].reshape(6, 6), line[6:42].reshape(6, 6), line[35:].reshape(6, 6)
    return {
        "out is a": ("a", {"a": mine, "b": square(), "out": mine}),
        "out is b": ("b", {"a": square(), "b": mine, "out": mine}),
        "out is a turned": ("a", {"a": mine, "b": square(), "out": mine.T}),
        "one element": ("a", {"a": first, "b": square(), "out": last}),
        "upside down": ("b", {"a": square(), "b": mine[::-1], "out": mine}),
        "shifted": ("c", {"a": square(), "b": square(), "beta": 1.0, "c": second, "out": first}),
        "a row": ("c", {"a": square(), "b": square(), "beta": 1.0, "c": mine[0], "out": mine}),
        "c turned": ("c", {"a": square(), "b": square(), "beta": 1.0, "c": mine.T, "out": mine}),
    }


@pytest.mark.parametrize("case", overlaps())
def test_an_out_that_shares_elements_is_refused_and_left_alone(case: str) -> None:
    operand, arguments = overlaps()[case]
    with pytest.raises(UsageError, match=f"out shares memory with {operand}"):
        gemm(**arguments)
    assert (arguments["out"] == 1).all()


@pytest.mark.parametrize("beta", [1e-60, -1e-60, np.float64(1e-50)])
def test_a_beta_that_is_0_in_float32_is_0_everywhere(beta: float) -> None:
    memory = np.full((6, 4), np.nan, np.float32)
    a = np.ones((4, 4), np.float32)
    # It neither needs a c, nor reads the one there is, nor minds where that lies.
    assert (gemmlab.gemm(a, a, beta=beta) == 4).all()
    assert (gemmlab.gemm(a, a, beta=beta, c=memory[2:], out=memory[:4]) == 4).all()
    assert (gemmlab.gemm(a, a, beta=beta, c=memory[:4], out=memory[:4]) == 4).all()


def test_factors_beyond_float32_are_infinite() -> None:
    a = np.ones((4, 4), np.float32)
    assert (gemmlab.gemm(a, a, alpha=1e39) == np.inf).all()
    assert (gemmlab.gemm(a, a[::-1], alpha=-1e39, beta=1e-60, c=a.T) == -np.inf).all()


def test_an_unread_c_may_share_memory_with_out() -> None:
    out = np.ones((4, 6), np.float32)
    assert (gemm(A, B, beta=0.0, c=out[::-1], out=out) == 5).all()


@pytest.mark.parametrize("sides", [(2**40, 2**40), (2**31, 2**31)])
def test_a_result_that_no_memory_holds(sides: tuple[int, int]) -> None:
    tall = as_strided(np.ones(1, np.float32), (sides[0], 3), (0, 0))
    wide = as_strided(np.ones(1, np.float32), (3, sides[1]), (0, 0))
    with pytest.raises(MemoryError):
        gemm(tall, wide)
    with pytest.raises(UsageError, match="k is 3 on the left"):
        gemm(tall, as_strided(np.ones(1, np.float32), (4, sides[1]), (0, 0)))


def test_errors_belong_to_the_package() -> None:
    with pytest.raises(gemmlab.GemmlabError):
        gemm(A, A)
    assert issubclass(ArgumentTypeError, UsageError)
