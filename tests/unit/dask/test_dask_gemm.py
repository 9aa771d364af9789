"""`gemmlab.dask.gemm` and `enabled` on Dask's schedulers."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("dask.array")

import dask
import dask.array as da

import gemmlab.dask
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.dask import tasks
from gemmlab.dask.tasks import Settings, threads_of

M, N, K = 70, 50, 90
Array = np.ndarray[Any, np.dtype[np.float32]]


def matrix(rows: int, columns: int, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)


def within_bound(
    found: Array, a: Array, b: Array, added: npt.NDArray[np.float64] | float = 0.0, alpha: float = 1.0
) -> None:
    exact = alpha * (a.astype(np.float64) @ b.astype(np.float64)) + added
    magnitude = abs(alpha) * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)) + np.abs(added)
    assert found.dtype == np.float32
    assert (np.abs(found - exact) <= (a.shape[1] + 12) * 2.0**-24 * magnitude).all()


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
@pytest.mark.parametrize("chunks", [((70, 90), (90, 50)), ((32, 7), (11, 50)), ((1, 90), (45, 1))], ids=str)
def test_any_chunks_on_any_scheduler(scheduler: str, chunks: tuple[tuple[int, int], tuple[int, int]]) -> None:
    if scheduler == "processes" and chunks[0][0] == 1:
        pytest.skip("thousands of tasks through pipes take too long")
    a, b = matrix(M, K, 1), matrix(K, N, 2)
    made = gemmlab.dask.gemm(da.from_array(a, chunks[0]), da.from_array(b, chunks[1]))
    assert made.shape == (M, N)
    assert made.dtype == np.float32
    assert made.chunks == (da.from_array(a, chunks[0]).chunks[0], da.from_array(b, chunks[1]).chunks[1])
    within_bound(made.compute(scheduler=scheduler, num_workers=2), a, b)


def test_bits_do_not_depend_on_workers() -> None:
    a, b = matrix(40, 4000, 3), matrix(4000, 30, 4)
    made = gemmlab.dask.gemm(da.from_array(a, (20, 100)), da.from_array(b, (100, 15)))
    alone = made.compute(scheduler="synchronous")
    for workers in (1, 2, 5):
        np.testing.assert_array_equal(made.compute(scheduler="threads", num_workers=workers), alone)


def test_alpha_beta_and_c() -> None:
    a, b, c = matrix(M, K, 5), matrix(K, N, 6), matrix(M, N, 7)
    left, right = da.from_array(a, (30, 20)), da.from_array(b, (20, 25))
    made = gemmlab.dask.gemm(left, right, c=da.from_array(c, (9, 50)), alpha=0.5, beta=-2.0)
    within_bound(made.compute(), a, b, -2.0 * c.astype(np.float64), 0.5)
    # beta 0 does not read c.
    unread = da.from_array(np.full((M, N), np.nan, np.float32), (30, 25))
    within_bound(gemmlab.dask.gemm(left, right, c=unread).compute(), a, b)
    # alpha 0 does not read a and b.
    nothing = da.from_array(np.full((M, K), np.nan, np.float32), (30, 20))
    found = gemmlab.dask.gemm(nothing, right, c=da.from_array(c, (30, 25)), alpha=0.0, beta=3.0).compute()
    np.testing.assert_array_equal(found, np.float32(3.0) * c)


def test_transposes_are_read_in_place_and_blocks_may_be_results() -> None:
    a, b = matrix(K, M, 8), matrix(N, K, 9)
    left, right = da.from_array(a, (20, 30)).T, da.from_array(b, (25, 45)).T
    within_bound(gemmlab.dask.gemm(left, right).compute(), a.T, b.T)
    within_bound(gemmlab.dask.gemm(left + 1, right).compute(), a.T + np.float32(1), b.T)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_empty_products(m: int, n: int, k: int) -> None:
    made = gemmlab.dask.gemm(da.zeros((m, k), dtype=np.float32), da.zeros((k, n), dtype=np.float32))
    np.testing.assert_array_equal(made.compute(), np.zeros((m, n), np.float32))


def test_special_values_are_where_ieee_arithmetic_puts_them() -> None:
    a, b = matrix(20, 60, 10), matrix(60, 20, 11)
    a[3, 50], b[10, 7] = np.nan, np.inf
    found = gemmlab.dask.gemm(da.from_array(a, (20, 10)), da.from_array(b, (10, 20))).compute()
    with np.errstate(invalid="ignore"):
        expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((np.ones((2, 2), np.float32), None), ArgumentTypeError, "a is ndarray; it must be a dask.array.Array"),
        ((da.ones((2, 2)), None), ArgumentTypeError, "a is float64; it must be float32"),
        ((da.ones(2, dtype=np.float32), None), UsageError, "a has 1 dimensions"),
        ((da.ones((2, 3), dtype=np.float32), None), UsageError, "a is 2x3 and b is 2x2: k differs"),
    ],
)
def test_wrong_operands(arguments: tuple[Any, Any], error: type[Exception], text: str) -> None:
    good = da.ones((2, 2), dtype=np.float32)
    with pytest.raises(error, match=text):
        gemmlab.dask.gemm(arguments[0], good)


def test_wrong_arguments() -> None:
    good = da.ones((2, 2), dtype=np.float32)
    with pytest.raises(UsageError, match=r"beta is 1\.0, so c is needed"):
        gemmlab.dask.gemm(good, good, beta=1.0)
    with pytest.raises(UsageError, match="c is 2x3; the product is 2x2"):
        gemmlab.dask.gemm(good, good, c=da.ones((2, 3), dtype=np.float32), beta=1.0)
    with pytest.raises(UsageError, match="precision is 'half'"):
        gemmlab.dask.gemm(good, good, precision="half")
    with pytest.raises(UsageError, match="threads is 0"):
        gemmlab.dask.gemm(good, good, threads=0)
    unknown = good[good[:, 0] > 0]
    with pytest.raises(UsageError, match=r"a has chunks of unknown size; a\.compute_chunk_sizes"):
        gemmlab.dask.gemm(unknown, good)


def test_another_version_on_a_worker_is_refused() -> None:
    block = np.ones((2, 2), np.float32)
    with pytest.raises(UsageError, match=r"made by gemmlab 0\.0\.1, and this worker has"):
        tasks.product(block, block, None, Settings(1.0, 0.0, "highest", None, 0, "0.0.1"), first=True)


def test_tasks_share_the_cores_of_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "physical_cores", lambda: 12)
    counts = [threads_of(Settings(1.0, 0.0, "highest", None, sharing)) for sharing in (1, 4, 5, 100)]
    assert counts == [12, 3, 2, 1]
    assert threads_of(Settings(1.0, 0.0, "highest", 7, 4)) == 7
    unknown = Settings(1.0, 0.0, "highest", None, 0)
    assert threads_of(unknown) is None
    found = list[int | None]()
    thread = threading.Thread(target=lambda: found.append(threads_of(unknown)))
    thread.start()
    thread.join()
    assert found == [1]


class TestEnabled:
    def test_float32_products_alone_are_ours(self) -> None:
        a, b = matrix(M, K, 12), matrix(K, N, 13)
        left, right = da.from_array(a, (30, 30)), da.from_array(b, (30, 50))
        own = da.Array.__matmul__
        with gemmlab.dask.enabled():
            made = left @ right
            assert made.name.startswith("gemmlab-gemm-")
            assert not (left.astype(float) @ right.astype(float)).name.startswith("gemmlab")
            assert not (left @ right[:, 0]).name.startswith("gemmlab")
            with gemmlab.dask.enabled("float32"):
                assert (left @ right).name != made.name
            assert (left @ right).name == made.name
        assert da.Array.__matmul__ is own
        assert not (left @ right).name.startswith("gemmlab")
        within_bound(made.compute(), a, b)

    def test_it_ends_with_an_error_and_does_not_reach_other_threads(self) -> None:
        x = da.ones((4, 4), dtype=np.float32)
        own = da.Array.__matmul__
        names = list[str]()
        with pytest.raises(ZeroDivisionError), gemmlab.dask.enabled():  # noqa: PT012 - what happens meanwhile
            thread = threading.Thread(target=lambda: names.append((x @ x).name))
            thread.start()
            thread.join()
            raise ZeroDivisionError
        assert da.Array.__matmul__ is own
        assert not names[0].startswith("gemmlab")


def test_masked_arrays_keep_the_product_of_dask() -> None:
    values = np.ma.masked_greater(np.arange(12, dtype=np.float32).reshape(3, 4), 9)
    a = da.from_array(values, chunks=(3, 4), asarray=False)
    b = da.ones((4, 3), chunks=4, dtype=np.float32)
    with gemmlab.dask.enabled():
        assert not (a @ b).name.startswith("gemmlab")
        assert (da.ones((3, 4), dtype=np.float32) @ b).name.startswith("gemmlab")


def test_equal_calls_have_one_name_and_others_do_not() -> None:
    x = da.ones((6, 6), dtype=np.float32, chunks=3)
    assert gemmlab.dask.gemm(x, x).name == gemmlab.dask.gemm(x, x).name
    assert gemmlab.dask.gemm(x, x).name != gemmlab.dask.gemm(x, x, alpha=2.0).name
    assert dask.is_dask_collection(gemmlab.dask.gemm(x, x))
