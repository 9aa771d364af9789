"""Float32 by AMX tiles: its bits, its errors on every kind of data, every exponent, special values, threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gemmlab
from gemmlab.core.precision import BF16X3_ROUNDOFF
from support.amx_model import needs_tiles, parts_of, product_by_tiles
from support.parts_data import KINDS, NORMAL
from support.parts_model import chain, errors

pytestmark = needs_tiles
Array = npt.NDArray[np.float32]
SIX = "bf16x6"


def rng() -> np.random.Generator:
    return np.random.default_rng(41)


def same_bits(one: Array, two: Array) -> None:
    np.testing.assert_array_equal(one.view(np.uint32), two.view(np.uint32))


def test_three_parts_hold_every_bit() -> None:
    x = np.exp(rng().uniform(-50, 50, 10_000)).astype(np.float32)
    parts = parts_of(x)
    np.testing.assert_array_equal(sum(part.astype(np.float64) for part in parts), x.astype(np.float64))
    assert all((part.view(np.uint32) & 0xFFFF == 0).all() for part in parts)


@pytest.mark.parametrize("products", [6, 9, 3])
@pytest.mark.parametrize("shape", [(32, 32, 32), (5, 40, 100), (70, 33, 257)])
def test_bits_are_those_of_the_instruction(shape: tuple[int, int, int], products: int) -> None:
    a, b = NORMAL(rng(), *shape)
    same_bits(gemmlab.gemm(a, b, precision=f"bf16x{products}"), product_by_tiles(a, b, products))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("k", [1, 5, 31, 300, 2100])
@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_no_larger_than_those_of_a_chain(kind: str, k: int) -> None:
    a, b = KINDS[kind](rng(), 130, 70, k)
    found, beside = (errors(c, a, b) for c in (gemmlab.gemm(a, b, precision=SIX), chain(a, b)))
    # What six products leave out is at most two units, and shows where a sum of a few terms hardly rounds.
    assert found.max() <= max(2.5, 1.1 * beside.max())
    assert np.sqrt(np.mean(found**2)) <= max(0.5, 1.1 * np.sqrt(np.mean(beside**2)))


@pytest.mark.parametrize("kind", ["normal", "uniform", "wide", "wider", "huge row", "cancellation"])
def test_long_sums_are_nearer_than_a_chain(kind: str) -> None:
    a, b = KINDS[kind](rng(), 64, 64, 4096)
    found, beside = (errors(c, a, b) for c in (gemmlab.gemm(a, b, precision=SIX), chain(a, b)))
    assert found.max() <= beside.max()
    assert np.sqrt(np.mean(found**2)) <= np.sqrt(np.mean(beside**2))


@pytest.mark.parametrize("kind", ["normal", "uniform", "wide"])
def test_three_products_have_16_bits(kind: str) -> None:
    a, b = KINDS[kind](rng(), 130, 70, 300)
    found = errors(gemmlab.gemm(a, b, precision="bf16x3"), a, b) * 2.0**-24
    assert 2.0**-22 < found.max() <= BF16X3_ROUNDOFF + 312 * 2.0**-24


@pytest.mark.parametrize("of_b", [-126, -100, -60, -30, 0, 40, 90, 127])
def test_every_exponent(of_b: int) -> None:
    """Nothing is lost where parts or products would be subnormal: multiply-adds take these blocks. Nor do sums overflow
    that float32 holds.
    """
    a, b = (np.clip(x, -1, 1) for x in NORMAL(rng(), 33, 35, 40))
    b = np.ldexp(b, of_b)
    for of_a in range(-149, min(127, 120 - of_b) + 1):
        x = np.ldexp(a, of_a)
        exact, magnitude = x.astype(np.float64) @ b, np.abs(x).astype(np.float64) @ np.abs(b)
        found = gemmlab.gemm(x, b, precision=SIX)
        # Multiply-adds themselves round what lies below the normal numbers to multiples of 2^-149.
        assert (np.abs(found - exact) <= 52 * (2.0**-24 * magnitude + 2.0**-149)).all(), of_a
    huge, large = np.full((33, 40), 2.0**100, np.float32), np.full((40, 3), 2.0**25, np.float32)
    assert np.isposinf(gemmlab.gemm(huge, large, precision=SIX)).all()


def test_the_limits_of_the_tiles_are_sharp() -> None:
    """Just above the least exponents tiles compute, just below multiply-adds; both to the same digits."""
    a, b = (np.ones((32, 32), np.float32) * np.float32(1 + 2.0**-23) for _ in range(2))
    seen = set()
    for exponent in range(-84, -76):
        left = np.ldexp(a, exponent)
        by_tiles = product_by_tiles(left, b)
        found = gemmlab.gemm(left, b, precision=SIX)
        exact = left.astype(np.float64) @ b
        assert (np.abs(found - exact) <= 4 * 2.0**-24 * exact).all()
        seen.add(bool((found == by_tiles).all()))
    assert True in seen


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("k", [40, 1500])
def test_special_values_stay_in_their_row_and_other_panels_keep_their_bits(value: float, k: int) -> None:
    a, b = NORMAL(rng(), 100, 90, k)
    clean = gemmlab.gemm(a, b, precision=SIX)
    a[40, k - 3] = value
    b[1, 70] = -value
    a[3, 1] = 0
    found = gemmlab.gemm(a, b, precision=SIX)
    with np.errstate(invalid="ignore"):
        expected = np.zeros((100, 90))
        for left, right in zip(a.T.astype(np.float64), b.astype(np.float64), strict=True):
            expected += np.multiply.outer(left, right)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    infinite = np.isinf(expected)
    np.testing.assert_array_equal(found[infinite], expected[infinite])
    finite = np.isfinite(expected)
    np.testing.assert_allclose(found[finite], expected[finite], rtol=0, atol=1e-3)
    # Panels of 32 rows, strips of 32 columns.
    rest = np.ones(found.shape, bool)
    rest[32:64], rest[:, 64:] = False, False
    rest[3] = False
    same_bits(found[rest], clean[rest])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("precision", [SIX, "float32", "bf16x9", "bf16x3"])
@pytest.mark.parametrize("kind", ["normal", "wider", "huge element"])
def test_any_number_of_threads_gives_the_same_bits(kind: str, precision: str) -> None:
    a, b = KINDS[kind](rng(), 333, 290, 1100)
    once = gemmlab.gemm(a, b, precision=precision, threads=1)
    for threads in (2, 3, 5, 16, 64):
        same_bits(gemmlab.gemm(a, b, precision=precision, threads=threads), once)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("alpha", "beta"), [(0.5, -1.5), (-1.0, 0.0), (1.0, 1.0), (0.0, 2.0)])
@pytest.mark.parametrize("precision", [SIX, "float32"])
def test_alpha_beta_and_views(alpha: float, beta: float, precision: str) -> None:
    a, b = NORMAL(rng(), 160, 150, 1200)
    c = rng().standard_normal((160, 150)).astype(np.float32)
    exact = alpha * (a.astype(np.float64) @ b) + beta * c
    magnitude = abs(alpha) * (np.abs(a).astype(np.float64) @ np.abs(b)) + np.abs(beta * c)

    def run(left: Array, right: Array, **more: Any) -> Array:
        wide = np.full((160, 200), np.nan, np.float32)
        out = wide[:, 7:157]
        if beta:
            out[...] = c
        gemmlab.gemm(left, right, alpha=alpha, beta=beta, c=out, out=out, precision=precision, **more)
        assert np.isnan(wide[:, :7]).all()
        assert np.isnan(wide[:, 157:]).all()
        return out.copy()

    plain = run(a, b)
    assert (np.abs(plain - exact) <= 24 * 2.0**-24 * magnitude).all()
    turned_a, turned_b = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    same_bits(run(turned_a, b, trans_a=True), plain)
    same_bits(run(a, turned_b, trans_b=True), plain)
    same_bits(run(turned_a, turned_b, trans_a=True, trans_b=True), plain)
    sparse_a, sparse_b = np.zeros((320, 2400), np.float32), np.zeros((2400, 300), np.float32)
    sparse_a[::2, ::2], sparse_b[::2, ::2] = a, b
    same_bits(run(sparse_a[::2, ::2], sparse_b[::2, ::2]), plain)
    same_bits(run(a[::-1][::-1], np.asfortranarray(b)), plain)


@pytest.mark.parametrize("precision", [SIX, "float32"])
def test_stacks_are_products_to_the_bit(precision: str) -> None:
    generator = rng()
    for shape in ((4, 9, 20, 10), (3, 130, 140, 150)):
        count, m, n, k = shape
        a = generator.standard_normal((count, m, k)).astype(np.float32)
        b = generator.standard_normal((k, n)).astype(np.float32)
        many = gemmlab.gemm(a, b, precision=precision)
        for one, left in zip(many, a, strict=True):
            same_bits(one, gemmlab.gemm(left, b, precision=precision))


def test_rows_and_columns_are_products_by_tiles_too() -> None:
    a, b = NORMAL(rng(), 50, 60, 70)
    for left, right in ((a[0], b), (a, b[:, 0])):
        found = gemmlab.gemm(left, right, precision=SIX)
        np.testing.assert_allclose(found, left.astype(np.float64) @ right, rtol=0, atol=2e-5)
    same_bits(gemmlab.gemm(a[0], b, precision=SIX), gemmlab.gemm(a, b, precision=SIX)[0])
