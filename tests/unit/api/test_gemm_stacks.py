"""Stacks of products in one call: every product is what it is alone, to the bit, wherever it lies."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gemmlab

Array = npt.NDArray[np.float32]
RNG = np.random.default_rng(5)
SHAPES = [
    (1, 1, 1), (1, 1, 7), (1, 5, 3), (5, 1, 3), (5, 1, 40), (1, 33, 20), (3, 3, 3), (4, 4, 4), (8, 8, 8), (12, 32, 9),
    (13, 33, 5), (17, 16, 18), (31, 33, 35), (64, 64, 64), (49, 50, 33), (65, 80, 70), (70, 9, 300),
    (2, 300, 2), (40, 50, 1100),
]  # fmt: skip


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt", "gaps"])
def test_a_product_has_the_bits_that_it_has_alone(shape: tuple[int, int, int], layout: str) -> None:
    m, n, k = shape
    count = 3 if m * n * k > 100_000 else 7
    a = normal(count, k, m).swapaxes(1, 2) if layout[0] == "t" else normal(count, m, k)
    b = normal(count, n, k).swapaxes(1, 2) if layout[-1] == "t" else normal(count, k, n)
    if layout == "gaps":
        a, b = normal(count, 2 * m, 2 * k)[:, ::2, ::2], normal(2 * count, k, 3 * n)[::2, ::-1, ::3]
    c = normal(count, m, n)
    for options in ({}, {"alpha": 0.7}, {"alpha": -1.5, "beta": 0.3}):
        own = {"c": c, **options} if "beta" in options else options
        alone = [
            gemmlab.gemm(a[i], b[i], **({**own, "c": c[i]} if "c" in own else own), threads=1) for i in range(count)
        ]
        for threads in (1, 2, 5):
            found = gemmlab.gemm(a, b, **own, threads=threads)
            assert found.tobytes() == np.array(alone).tobytes(), (options, threads)
        for place in (
            np.full((m, count, n), np.nan, np.float32).swapaxes(0, 1),
            np.full((count, n, m), np.nan, np.float32),
        ):
            out = place if place.shape == c.shape else place.swapaxes(1, 2)
            out[...] = c if "c" in own else np.nan
            assert gemmlab.gemm(a, b, **({**own, "c": out} if "c" in own else own), out=out) is out
            assert np.array(out, order="C").tobytes() == np.array(alone).tobytes(), options


@pytest.mark.parametrize("n", [16, 33, 48, 49, 64, 65, 80, 97])
def test_every_number_of_rows_and_columns_at_the_edges_of_tiles(n: int) -> None:
    """Right, and nothing written beside the results, for one to four vectors in a row and for strips of them."""
    for m in (1, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 18, 21, 24, 28, 33, 64):
        for k in (1, 2, 5, 8, 19):
            a, b = (RNG.integers(-4, 5, shape).astype(np.float32) for shape in ((3, m, k), (3, k, n)))
            whole = np.full((3, m + 1, n + 3), np.nan, np.float32)
            gemmlab.gemm(a, b, out=whole[:, :m, 1 : n + 1])
            np.testing.assert_array_equal(whole[:, :m, 1 : n + 1], np.einsum("...ik,...kj->...ij", a, b))
            assert np.isnan(whole).sum() == 3 * ((m + 1) * (n + 3) - m * n)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((7, 1, 3, 5), (4, 5, 6)), ((3, 5), (9, 5, 6)), ((9, 3, 5), (5, 6)), ((2, 3, 4, 3, 5), (1, 3, 1, 5, 6)),
        ((1, 3, 5), (1, 5, 6)), ((8, 3, 5), (5,)), ((5,), (8, 5, 6)), ((300, 2, 3, 3), (1, 2, 3, 3)),
        ((1, 1, 1), (4, 1, 1)),
    ],
)  # fmt: skip
def test_leading_axes_broadcast_at_any_place(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = RNG.integers(-4, 5, left).astype(np.float32), RNG.integers(-4, 5, right).astype(np.float32)
    expected = np.matmul(a, b)
    assert np.array_equal(gemmlab.gemm(a, b), expected)
    spread = np.broadcast_to(a, np.broadcast_shapes(expected.shape[:-2], left[:-2]) + left[-2:]) if len(left) > 1 else a
    if len(right) > 1 and len(left) > 1:
        assert np.array_equal(gemmlab.gemm(spread, b), expected)
    out = np.full(expected.shape[::-1], np.nan, np.float32).T
    assert gemmlab.gemm(a, b, out=out) is out
    assert np.array_equal(out, expected)


def test_runs_on_both_sides_of_a_share() -> None:
    """Threads cut a stack anywhere: inside the innermost axis, between two of them, behind the last."""
    a, b = (
        RNG.integers(-4, 5, (37, 211, 3, 3)).astype(np.float32),
        RNG.integers(-4, 5, (37, 1, 3, 3)).astype(np.float32),
    )
    for threads in (1, 2, 3, 8):
        assert np.array_equal(gemmlab.gemm(a, b, threads=threads), a @ b)
        assert np.array_equal(gemmlab.gemm(a.swapaxes(0, 1), b[:, 0], threads=threads), a.swapaxes(0, 1) @ b[:, 0])


@pytest.mark.parametrize("beta", [0.0, 2.0])
def test_nothing_beside_the_results_is_written(beta: float) -> None:
    memory = np.full((9, 7, 40), np.nan, np.float32)
    out = memory[1:-1:2, 1:-1, 3:-4]
    out[...] = 1
    a, b = RNG.integers(-4, 5, (4, 5, 6)).astype(np.float32), RNG.integers(-4, 5, (6, 33)).astype(np.float32)
    gemmlab.gemm(a, b, beta=beta, c=out, out=out)
    assert np.array_equal(out, a @ b + beta)
    assert np.isnan(memory).sum() == memory.size - out.size


def test_an_out_that_overlaps_is_refused_in_a_stack_as_well() -> None:
    memory = normal(6, 4, 4)
    with pytest.raises(gemmlab.UsageError, match="shares memory with a"):
        gemmlab.gemm(memory[:3], np.eye(4, dtype=np.float32), out=memory[2:5])
    with pytest.raises(gemmlab.UsageError, match="share memory with each other"):
        gemmlab.gemm(memory[:3], memory[:3], out=np.lib.stride_tricks.as_strided(normal(90), (3, 4, 4), (32, 16, 4)))
    with pytest.raises(gemmlab.UsageError, match="read-only"):
        gemmlab.gemm(memory[:3], memory[:3], out=np.broadcast_to(normal(4, 4), (3, 4, 4)))


def test_new_results_are_owned_and_counted_once() -> None:
    a = normal(3, 4, 4)
    found = gemmlab.gemm(a, a)
    assert type(found) is np.ndarray
    assert found.flags.owndata
    assert found.flags.c_contiguous
    assert sys.getrefcount(found) == 2
    # More than any address space holds: a system that overcommits gives the rest.
    with pytest.raises(MemoryError):
        gemmlab.gemm(np.broadcast_to(a[:1], (2**50, 4, 4)), a[0])
    with pytest.raises(gemmlab.UsageError, match="no c"):
        gemmlab.gemm(a, a, beta=1.0)


def _seconds(call: Any) -> float:
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


@pytest.mark.parametrize("n", [1, 3, 8])
def test_a_large_stack_of_small_products_takes_no_longer_than_numpy_would(n: int) -> None:
    """Ten times as long is allowed for: one call a product took hundreds of times as long."""
    a, b, out = normal(30_000, n, n), normal(30_000, n, n), normal(30_000, n, n)
    assert _seconds(lambda: gemmlab.gemm(a, b, out=out)) < 10 * _seconds(lambda: np.matmul(a, b, out=out))
