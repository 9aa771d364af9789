"""What fuzzers hold results to: that it tells right from wrong."""

import numpy as np
import pytest
from memory import numbers, watched
from products import UNIT, assert_product

RNG = np.random.default_rng(3)
A, B = (RNG.standard_normal(shape).astype(np.float32) for shape in ((3, 20, 30), (30, 40)))
RIGHT = (A.astype(np.float64) @ B).astype(np.float32)


def test_an_element_beyond_its_bound_is_found() -> None:
    assert_product(RIGHT, A, B, 1.0, 0.0, None)
    for off in (40 * UNIT * float(np.abs(A[1, 2]) @ np.abs(B[:, 7])), np.nan, np.inf):
        wrong = RIGHT.copy()
        wrong[1, 2, 7] += off
        with pytest.raises(AssertionError, match=r"1 of 2400 wrong, first at \(1, 2, 7\)"):
            assert_product(wrong, A, B, 1.0, 0.0, None)


def test_infinities_and_nan_must_be_where_they_belong() -> None:
    a = A.copy()
    a[0, 3, 4] = np.inf
    with np.errstate(all="ignore"):
        right = (a.astype(np.float64) @ B).astype(np.float32)
    assert_product(right, a, B, 1.0, 0.0, None)
    for value in (-right[0, 3, 5], np.float32(1.0), np.float32(np.nan)):
        wrong = right.copy()
        wrong[0, 3, 5] = value
        with pytest.raises(AssertionError, match="1 of 2400 wrong"):
            assert_product(wrong, a, B, 1.0, 0.0, None)


def test_alpha_and_beta_count() -> None:
    c = np.full(RIGHT.shape, 100.0)
    assert_product(2 * RIGHT - 50, A, B, 2.0, -0.5, c)
    with pytest.raises(AssertionError, match="2400 of 2400"):
        assert_product(RIGHT, A, B, 2.0, -0.5, c)
    assert_product(np.zeros_like(RIGHT), A, B, 0.0, 0.0, c)


def test_a_byte_beside_a_view_is_missed() -> None:
    for _ in range(200):
        found = watched(RNG, numbers(RNG, (3, 4, 2)))
        found.view[...] = 7
        found.assert_intact()
        assert (found.view == 7).all()
        with pytest.raises(AssertionError):
            found.assert_intact(whole=True)
        inside = found.view.copy()
        found.memory[int(RNG.choice([0, found.memory.size - 1]))] ^= 1
        assert np.array_equal(found.view, inside)
        with pytest.raises(AssertionError, match="beside the view"):
            found.assert_intact()
