"""`gemmlab.gemm` and `gemmlab.blas.sgemm` beside float64, on any shape, view, scalar and content that comes up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gemmlab
from gemmlab import blas
from support.beside_float64 import ALPHAS, BETAS, Array, assert_right, contents

# Tiles end at multiples of 6 to 32; vectors and dots have loops of their own; a k-block is 640 or longer.
EXTENTS = st.one_of(st.integers(0, 9), st.integers(10, 70))
DEPTHS = st.one_of(EXTENTS, st.sampled_from((639, 641, 900, 1500)))


def viewed(data: st.DataObject, values: Array, name: str) -> Array:
    """The same values in some view: steps of either sign, either order, a gap between rows."""
    rows, cols = values.shape
    down, over = (data.draw(st.sampled_from((1, 1, 2, -1, -3)), f"step in {name}") for _ in range(2))
    gap = data.draw(st.integers(0, 2), f"gap in {name}")
    memory = np.full((rows * abs(down) + 1, cols * abs(over) + gap), np.nan, np.float32)
    if data.draw(st.booleans(), f"{name} by columns"):
        memory = np.full(memory.shape[::-1], np.nan, np.float32).T
    view = memory[::down, ::over][:rows, :cols]
    view[...] = values
    return view


def operands(data: st.DataObject, m: int, n: int, k: int) -> list[Array]:
    return [contents(data, shape, name) for shape, name in (((m, k), "a"), ((k, n), "b"), ((m, n), "c"))]


@pytest.mark.in_turns(2)
@settings(max_examples=200, deadline=None)
@given(data=st.data(), m=EXTENTS, n=EXTENTS, k=DEPTHS, alpha=ALPHAS, beta=BETAS)
def test_gemm_of_any_views(data: Any, m: int, n: int, k: int, alpha: float, beta: float) -> None:
    a, b, c = operands(data, m, n, k)
    trans_a, trans_b = data.draw(st.booleans(), "trans_a"), data.draw(st.booleans(), "trans_b")
    left, right = viewed(data, a.T if trans_a else a, "a"), viewed(data, b.T if trans_b else b, "b")
    options: dict[str, Any] = {"alpha": alpha, "beta": beta, "trans_a": trans_a, "trans_b": trans_b}
    options["threads"] = data.draw(st.sampled_from((None, 1, 2)), "threads")
    where = data.draw(st.sampled_from(("returned", "out", "in place")), "result")
    given = viewed(data, c, "c")
    if where != "returned":
        options["out"] = given if where == "in place" else viewed(data, np.full_like(c, np.nan), "out")
    result = gemmlab.gemm(left, right, c=given, **options)
    assert result is options.get("out", result)
    assert_right(result, a, b, alpha, beta, c)
    assert np.array_equal(left, a.T if trans_a else a, equal_nan=True)


@pytest.mark.in_turns(2)
@settings(max_examples=200, deadline=None)
@given(data=st.data(), m=EXTENTS, n=EXTENTS, k=DEPTHS, alpha=ALPHAS, beta=BETAS)
def test_sgemm_of_any_views(data: Any, m: int, n: int, k: int, alpha: float, beta: float) -> None:
    a, b, c = operands(data, m, n, k)
    trans_a, trans_b = (data.draw(st.integers(0, 2), name) for name in ("trans_a", "trans_b"))
    left, right = viewed(data, a.T if trans_a else a, "a"), viewed(data, b.T if trans_b else b, "b")
    overwritten = np.array(c, order="F")
    result = blas.sgemm(alpha, left, right, beta, overwritten, trans_a, trans_b, overwrite_c=1)
    assert result is overwritten
    assert_right(result, a, b, alpha, beta, c)
