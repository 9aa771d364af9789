"""`reproducible=True`: the bits of a row do not depend on the other rows."""

from __future__ import annotations

import numpy as np
import pytest

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
