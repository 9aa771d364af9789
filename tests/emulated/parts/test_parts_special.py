"""NaN and infinities in products of parts: in their places, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from parts_runs import KERNELS, product

from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm_problem import LAYOUTS
from support.parts_data import NORMAL, Array
from support.parts_model import STRIP, chain, errors, ways

M, N, K = 2 * STRIP + 3, STRIP + 5, 130
BY_TILE = next(kernel for kernel in KERNELS if kernel.id == "by_tile")
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.id)


def operands() -> tuple[Array, Array]:
    return NORMAL(np.random.default_rng(23), M, N, K)


def ieee(a: Array, b: Array) -> np.ndarray:
    """The product in float64, as IEEE arithmetic makes it: 0 x infinity is NaN, and no zero is passed over."""
    sums = np.zeros((len(a), b.shape[1]))
    with np.errstate(invalid="ignore"):
        for left, right in zip(a.T.astype(np.float64), b.astype(np.float64), strict=True):
            sums += np.multiply.outer(left, right)
    return sums


def same_places(found: Array, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    infinite = np.isinf(expected)
    np.testing.assert_array_equal(np.isinf(found), infinite)
    np.testing.assert_array_equal(found[infinite], expected[infinite])


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@each_kernel
def test_a_special_value_stays_in_its_row_or_column_and_other_strips_keep_their_bits(
    kernel: Kernel, value: float
) -> None:
    a, b = operands()
    clean = product(kernel, a, b).c
    a[STRIP + 7, 100] = value
    b[129, STRIP + 2] = -value
    # 0 x infinity
    a[3, 129] = 0
    b[100, 11] = 0
    found = product(kernel, a, b).c
    same_places(found, ieee(a, b))
    rest = np.ones((M, N), bool)
    rest[STRIP : 2 * STRIP], rest[:, STRIP:] = False, False
    # Rows and columns with a new zero are other products.
    rest[3], rest[:, 11] = False, False
    np.testing.assert_array_equal(found[rest].view(np.uint32), clean[rest].view(np.uint32))


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@each_kernel
def test_tiles_beside_special_ones_are_computed_as_before(kernel: Kernel) -> None:
    a, b = operands()
    assert ways(a, b) == (6, 0, 0)
    a[STRIP, 0] = np.nan
    assert ways(a, b) == (4, 0, 2)
    before, found = product(kernel, *operands()), product(kernel, a, b)
    # Two tiles of six go without tensor cores; by_tile computes the one row apart, and all tiles as before.
    tiles = 6 if kernel.id == "by_tile" else 4
    assert 6 * (found.halves + found.bfloats) == tiles * (before.halves + before.bfloats)


@pytest.mark.parametrize("width", [64, 128])
def test_full_tiles_store_all_but_their_odd_lines(width: int) -> None:
    """Results are stored in pairs there: odd lines leave out the first of a pair, the second, and both."""
    a, b = NORMAL(np.random.default_rng(29), 2 * STRIP, 2 * STRIP, K)
    config = {"BN": width, "STAGES": 3 if width == STRIP else 4}
    clean = product(BY_TILE, a, b, config=config).c
    rows, columns = [5, 13, STRIP + 120], [36, 91, 100, 101, STRIP + 1]
    for at, row in enumerate(rows):
        a[row, at] = np.inf
    b[7, columns] = np.nan
    found = product(BY_TILE, a, b, config=config).c
    same_places(found, ieee(a, b))
    rest = np.ones(found.shape, bool)
    rest[rows], rest[:, columns] = False, False
    np.testing.assert_array_equal(found[rest].view(np.uint32), clean[rest].view(np.uint32))


@pytest.mark.sampled(1)
@each_kernel
def test_sums_of_opposite_infinities_are_nan_and_overflow_is_infinite(kernel: Kernel) -> None:
    a, b = (np.abs(x) for x in operands())
    a[:, :2], b[:2] = 1, 1
    a[1, :2] = np.inf, -np.inf
    a[2], b[:, 2] = 3e38, 3e38
    same_places(product(kernel, a, b).c, ieee_in_float32(a, b))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("layout", ["nn", "tt"])
@each_kernel
def test_sums_near_the_largest_float32_come_back_from_it(kernel: Kernel, layout: str) -> None:
    a, b = (np.abs(x) for x in operands())
    # Two sums that come back to 0, but not if the terms 0 and 96 are added first; an infinity beside an overflow.
    places, values = [0, 1, 96, 97], np.array([3e38, -3e38, 3e38, -3e38], np.float32)
    a[:, places], b[places] = 1, 1
    a[1], b[:, 2] = 0, 0
    a[1, places], b[places, 2] = values, values
    a[4, :2], b[:2, 4] = (np.inf, 3e38), (1, -4)
    expected = chain(a, b)
    same_places(product(kernel, a, b, layout=layout).c, expected.astype(np.float64))
    assert expected[1, 0] == expected[0, 2] == 0
    assert expected[4, 4] == np.inf


@pytest.mark.parametrize("layout", LAYOUTS)
def test_odd_lines_overflow_only_where_their_sums_do(layout: str) -> None:
    """Partial sums of a lane: 64 steps of k apart, four neighbours. Those of two lanes overflow in both directions."""
    a, b = operands()
    huge = np.float32(3e38)
    a[1:5], b[:, :2] = 0, 1
    a[1, [0, 64, 4, 68]] = huge, huge, -huge, -huge
    a[2, [0, 64, 4, 68, 129]] = huge, huge, -huge, -huge, 1e38
    a[3, [0, 64]] = huge, huge
    a[4, [0, 64]], b[[0, 64], 1] = huge, (4, -4)
    b[:, STRIP + 1], b[[0, 64, 5, 69], STRIP + 1] = 0, (-huge, -huge, huge, huge)
    a[5:] = np.sign(a[5:])
    with np.errstate(all="ignore"):
        found = product(BY_TILE, a, b, layout=layout).c
    same_places(found, ieee_in_float32(a, b))
    assert found[1, 0] == found[4, 1] == 0
    assert found[2, 0] == pytest.approx(1e38, rel=1e-5)
    assert found[3, 0] == np.inf
    finite = np.isfinite(found)
    assert (errors(found, a, b)[finite] <= K + 12).all()
    np.testing.assert_array_equal(found.view(np.uint32), product(BY_TILE, a, b, config={"BLOCKS": 2}).c.view(np.uint32))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_terms_that_are_not_finite_tell_the_results_of_odd_lines(layout: str) -> None:
    a, b = (np.abs(x) + np.float32(1) for x in operands())
    inf, huge = np.float32(np.inf), np.float32(3e38)
    a[1, 3] = inf
    a[2, 3] = -inf
    a[3, [3, 125]] = inf, -inf
    a[4, 129] = np.nan
    a[5, 0], b[0, 7] = inf, 0
    # An infinity beside partial sums that overflow in the other direction.
    a[6, [0, 64, 5]] = -huge, -huge, inf
    a[M - 1] = np.nan
    b[127, 0] = -inf
    b[[9, 64], N - 1] = np.nan, inf
    expected = ieee_in_float32(a, b)
    found = product(BY_TILE, a, b, layout=layout, alpha=2.0, beta=0.5, c=np.ones((M, N), np.float32)).c
    same_places(found, expected)
    for row, value in [(1, inf), (2, -inf), (6, inf)]:
        assert found[row, 1] == value
    for row in (3, 4, M - 1):
        assert np.isnan(found[row]).all()
    assert np.isnan(found[5, 7])
    assert found[5, 8] == inf


def ieee_in_float32(a: Array, b: Array) -> np.ndarray:
    """`ieee`, with infinity for what float32 cannot hold."""
    with np.errstate(over="ignore"):
        return ieee(a, b).astype(np.float32).astype(np.float64)
