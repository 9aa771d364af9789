"""`reproducible=True`: the bits of a row do not depend on the other rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gemmlab
from gemmlab.core.errors import ArgumentTypeError


def uniform(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize(("n", "k"), [(257, 4097), (3, 5000), (1, 3000), (64, 64), (0, 5), (5, 0)])
def test_a_row_has_the_same_bits_alone_and_among_others(n: int, k: int) -> None:
    a, b = uniform(9, k), uniform(k, n)
    every = gemmlab.gemm(a, b, reproducible=True)
    for rows in (1, 2, 5):
        np.testing.assert_array_equal(gemmlab.gemm(a[:rows], b, reproducible=True), every[:rows])
    np.testing.assert_array_equal(gemmlab.gemm(a[3], b, reproducible=True), every[3])
    stack = gemmlab.gemm(a[:, np.newaxis, :], b, reproducible=True)
    np.testing.assert_array_equal(stack[:, 0], every)


def same_bits(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(np.array(found).view(np.uint32), np.array(expected).view(np.uint32))


@pytest.mark.parametrize("k", [1, 37, 3000])
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("trans_a", [False, True])
def test_rows_of_a_matrix_with_contiguous_columns_have_the_same_bits_however_many(
    n: int, k: int, *, trans_a: bool
) -> None:
    a, b = uniform(64, k), uniform(k, n)
    every = gemmlab.gemm(a, b, reproducible=True)

    def given_as(rows: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(rows.T) if trans_a else np.asfortranarray(rows)

    whole = given_as(a)
    same_bits(gemmlab.gemm(whole, b, trans_a=trans_a, reproducible=True), every)
    for m in (*range(1, 10), 63):
        part = whole[:, :m] if trans_a else whole[:m]
        for some in (part, given_as(a[:m])):
            same_bits(gemmlab.gemm(some, b, trans_a=trans_a, reproducible=True), every[:m])


LAYOUTS = ("C", "F", "stepped", "backwards", "broadcast")


def laid_out(x: np.ndarray, layout: str) -> np.ndarray:
    """The same matrix in another layout; `broadcast` has one row, repeated, and works for equal rows alone."""
    if layout == "broadcast":
        return np.broadcast_to(x[:1].copy(), x.shape)
    if layout == "backwards":
        return x[::-1, ::-1].copy()[::-1, ::-1]
    if layout == "stepped":
        room = np.full((2 * x.shape[0], 3 * x.shape[1]), np.nan, np.float32)
        room[::2, ::3] = x
        return room[::2, ::3]
    return np.array(x, order="C" if layout == "C" else "F")


@settings(max_examples=100, deadline=None)
@given(
    extents=st.tuples(st.integers(1, 5), st.integers(1, 5), st.sampled_from([1, 2, 17, 40, 300, 1100])),
    forms=st.tuples(*[st.sampled_from(LAYOUTS)] * 2, st.sampled_from(LAYOUTS[:4])),
    factors=st.sampled_from([(1.0, 0.0), (0.5, -2.0)]), stacked=st.booleans(), packed=st.booleans(),
)  # fmt: skip
def test_bits_do_not_depend_on_layouts_or_extents(
    extents: tuple[int, int, int], forms: tuple[str, str, str], factors: tuple[float, float],
    *, stacked: bool, packed: bool,
) -> None:  # fmt: skip
    (m, n, k), (alpha, beta) = extents, factors
    a, b, c = uniform(9, k), uniform(k, 33), uniform(9, 33)
    a, b = (np.array(laid_out(x, how)) if how == "broadcast" else x for x, how in zip((a, b), forms, strict=False))
    every = gemmlab.gemm(a, b, alpha=alpha, beta=beta, c=c, reproducible=True)[:m, :n]
    left, right, out = (
        laid_out(x[:rows, :cols], how)
        for x, rows, cols, how in zip((a, b, c), (m, k, m), (k, n, n), forms, strict=True)
    )
    given_b = gemmlab.pack(right) if packed else right
    how: dict[str, Any] = {"alpha": alpha, "beta": beta, "reproducible": True}
    if stacked:
        stack = np.broadcast_to(left, (3, *left.shape))
        for one in gemmlab.gemm(stack, given_b, c=out, **how):
            same_bits(one, every)
    else:
        same_bits(gemmlab.gemm(left, given_b, c=out, out=out, **how), every)


@pytest.mark.parametrize("how", [{"kernel": "threaded"}, {"config": {}}, {"kernel": "cache_block"}])
def test_a_kernel_that_the_caller_names_is_reproducible_too(how: dict[str, Any], tmp_path: Path) -> None:
    a, b = np.asfortranarray(uniform(9, 700)), np.asfortranarray(uniform(700, 5))
    whole = gemmlab.gemm(a, b, reproducible=True, **how)
    for row in (0, 8):
        alone = gemmlab.gemm(a[row : row + 1], b, reproducible=True, **how)
        assert alone.tobytes() == whole[row : row + 1].tobytes()
    column = gemmlab.gemm(a, b[:, 2:3], reproducible=True, **how)
    assert column.tobytes() == np.ascontiguousarray(whole[:, 2:3]).tobytes()
    files = [np.memmap(tmp_path / name, np.float32, "w+", shape=x.shape) for name, x in (("a", a), ("b", b[:, 2:3]))]
    files[0][:], files[1][:] = a, b[:, 2:3]
    pieces = gemmlab.gemm(*files, reproducible=True, memory_bytes=60_000, **how)
    assert pieces.tobytes() == column.tobytes()


def test_a_single_row_keeps_its_scalars_and_its_out() -> None:
    a, b, c = uniform(1, 3000), uniform(3000, 40), uniform(1, 40)
    wanted = 0.5 * (a.astype(np.float64) @ b) - 2 * c
    room = np.full((3, 40), np.nan, np.float32)
    result = gemmlab.gemm(a, b, alpha=0.5, beta=-2, c=c, out=room[1:2], reproducible=True)
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)
    assert np.isnan(room[[0, 2]]).all()


def test_reproducible_is_a_flag() -> None:
    with pytest.raises(ArgumentTypeError, match="reproducible is 'yes'; it must be True or False"):
        gemmlab.gemm(uniform(2, 2), uniform(2, 2), reproducible="yes")  # type: ignore[arg-type]
