"""Calls like one before: nothing of them is looked at twice but what may differ."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import ArgumentTypeError, DeviceError, UsageError
from gemmlab.dispatch import cuda_again, cuda_operands
from support.gemm_driver import GemmDriver
from support.gemm_on_gpu import A, B, C, Float32Array, close, forms, played_driver, uniform
from support.gpu_arrays import Array, Tensor, play_cupy, play_torch

OURS = "context of 1"


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[GemmDriver]:
    play_torch(monkeypatch, 99)
    yield from played_driver(monkeypatch)


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on nothing is looked at as if it were new."""
    return lambda: monkeypatch.setattr(cuda_operands, "request", lambda *_: pytest.fail("looked at"))


def test_the_same_call_again_is_not_looked_at(driver: GemmDriver, settled: Callable[[], None]) -> None:
    driver.contexts.append(OURS)
    close(gemmlab.gemm(Tensor(A), y := Tensor(B)), A @ B)
    settled()
    before = len(driver.contexts)
    for alpha in (1.0, 0.5, np.float32(3), 2):
        again = gemmlab.gemm(Tensor(A.copy()), y, alpha=alpha)
        assert isinstance(again, Tensor)
        close(again, alpha * A @ B)
    assert [launch[-1] for launch in driver.launches] == [99] * 5
    # The right context is current: it is not made so.
    assert len(driver.contexts) == before


@pytest.mark.parametrize("of_out", forms(C))
def test_into_out_again(driver: GemmDriver, settled: Callable[[], None], of_out: str) -> None:
    x, y = Tensor(A), Tensor(B)
    gemmlab.gemm(x, y, out=Tensor(forms(C)[of_out]))
    settled()
    out = Tensor(forms(C)[of_out])
    assert gemmlab.gemm(x, y, out=out) is out
    close(out, A @ B)
    close(gemmlab.gemm(x, y, alpha=0.5, beta=2.0, c=out, out=out), 2.5 * A @ B)
    assert len(driver.launches) == 3


def test_factors_that_float32_rounds_to_0_or_infinity(driver: GemmDriver, settled: Callable[[], None]) -> None:
    x, y, c = Tensor(A), Tensor(B), Tensor(np.full_like(C, np.nan))
    gemmlab.gemm(x, y)
    gemmlab.gemm(x, y, beta=1.0, c=Tensor(C))
    settled()
    for added in (None, c):
        close(gemmlab.gemm(x, y, beta=1e-60, c=added), A @ B)
    assert np.isinf(gemmlab.gemm(x, y, alpha=1e39).values).all()
    assert len(driver.launches) == 5


@pytest.mark.parametrize("added", [C, C[0], C[:, :1], np.float32(7) * C[:1, :1]])
def test_with_c_again(driver: GemmDriver, settled: Callable[[], None], added: Float32Array) -> None:
    x, y, c = Tensor(A), Tensor(B), Tensor(added)
    gemmlab.gemm(x, y, beta=2.0, c=c)
    settled()
    close(gemmlab.gemm(x, y, alpha=3.0, beta=-0.5, c=c), 3 * A @ B - added / 2)
    # Not read where nothing of it is asked for.
    hollow = np.lib.stride_tricks.as_strided(np.full(C.size, np.nan, np.float32), added.shape, added.strides)
    close(gemmlab.gemm(x, y, c=Tensor(hollow)), A @ B)
    assert len(driver.launches) == 3


def test_c_in_one_block_is_copied_by_the_driver(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch, settled: Callable[[], None]
) -> None:
    play_cupy(monkeypatch, 7)
    for kind in (Tensor, Array):
        monkeypatch.setattr(Tensor, "copy_", lambda *_: pytest.fail("copied by torch"))
        monkeypatch.setattr(Array, "__setitem__", lambda *_: pytest.fail("copied by CuPy"))
        x, y = kind(A), kind(B)
        # The first call reads no c, and later ones with the same layouts do.
        close(gemmlab.gemm(x, y, c=kind(np.full_like(C, np.nan))), A @ B)
        close(gemmlab.gemm(kind(np.stack([A, A])), y, beta=2.0, c=kind(np.stack([C, -C]))), stacked(2.0))
    settled()
    for kind in (Tensor, Array):
        close(gemmlab.gemm(kind(A), kind(B), beta=2.0, c=kind(C)), A @ B + 2 * C)
        close(gemmlab.gemm(kind(np.stack([A, A])), kind(B), beta=-1.0, c=kind(np.stack([C, -C]))), stacked(-1.0))
        close(gemmlab.gemm(kind(A), kind(B), c=kind(np.full_like(C, np.nan))), A @ B)
    # Each on the stream of its product.
    copy = "cuMemcpyDtoDAsync"
    assert driver.events == [(copy, 99), (copy, 7), *[(copy, 99)] * 2, *[(copy, 7)] * 2]


def stacked(beta: float) -> Float32Array:
    return np.stack([A @ B + beta * C, A @ B - beta * C])


@pytest.mark.parametrize("of_c", [*sorted(forms(C).keys() - {"rows"}), "a row for all"])
def test_c_with_other_strides_is_copied_by_its_package(
    driver: GemmDriver, settled: Callable[[], None], of_c: str
) -> None:
    c = forms(C).get(of_c, C[:1])
    gemmlab.gemm(Tensor(A), Tensor(B), beta=2.0, c=Tensor(c))
    settled()
    close(gemmlab.gemm(Tensor(A), Tensor(B), beta=2.0, c=Tensor(c)), A @ B + 2 * c)
    assert not driver.events


def test_c_is_copied_in_the_gpu_s_context(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch, settled: Callable[[], None]
) -> None:
    current = list[Any]()

    def copy(to: int, source: int, nbytes: int, _stream: int) -> tuple[int]:
        current.append(driver.contexts[-1])
        ctypes.memmove(to, source, nbytes)
        return (0,)

    monkeypatch.setattr(driver, "cuMemcpyDtoDAsync", copy, raising=False)
    for before in ("another GPU's", OURS, "none"):
        driver.contexts[:] = [before]
        close(gemmlab.gemm(Tensor(A), Tensor(B), beta=2.0, c=Tensor(C)), A @ B + 2 * C)
        assert driver.contexts[-1] == before
        settled()
    assert current == [OURS] * 3


def test_a_copy_that_fails_is_an_error(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    gemmlab.gemm(Tensor(A), Tensor(B), c=Tensor(C))
    monkeypatch.setattr(driver, "cuMemcpyDtoDAsync", lambda *_: (201,), raising=False)
    with pytest.raises(DeviceError, match="cuMemcpyDtoDAsync failed: CUDA_ERROR_INVALID_CONTEXT"):
        gemmlab.gemm(Tensor(A), Tensor(B[:, :7]), beta=1.0, c=Tensor(C[:, :7].copy()))


@pytest.mark.usefixtures("driver")
def test_an_out_that_overlaps_is_refused_each_time() -> None:
    room, square = uniform(24, 12), uniform(12, 12)
    close(gemmlab.gemm(Tensor(room[:12]), Tensor(square), out=Tensor(uniform(12, 12))), room[:12] @ square)
    for first in (0, 1, 11):
        with pytest.raises(UsageError, match="out shares memory with a"):
            gemmlab.gemm(Tensor(room[:12]), Tensor(square), out=Tensor(room[first : first + 12]))
        with pytest.raises(UsageError, match="out shares memory with b"):
            gemmlab.gemm(Tensor(square), Tensor(room[:12]), out=Tensor(room[first : first + 12]))
    expected = room[:12] @ square
    close(gemmlab.gemm(Tensor(room[:12]), Tensor(square), out=Tensor(room[12:24])), expected)
    # The same rows, and other columns: they span each other's memory and share none of it.
    wide = uniform(12, 24)
    expected = wide[:, :12] @ square
    for _ in range(2):
        close(gemmlab.gemm(Tensor(wide[:, :12]), Tensor(square), out=Tensor(wide[:, 12:])), expected)


def test_another_context_is_the_caller_s_afterwards(driver: GemmDriver, settled: Callable[[], None]) -> None:
    x, y = Tensor(A), Tensor(B)
    gemmlab.gemm(x, y)
    settled()
    for before in ("another GPU's", OURS, "none"):
        driver.contexts[:] = [before]
        close(gemmlab.gemm(x, y), A @ B)
        assert driver.contexts[-1] == before
        assert driver.contexts == ([OURS] if before == OURS else [before, OURS, before])


def test_what_differs_is_looked_at(driver: GemmDriver) -> None:
    driver.contexts.append(OURS)
    x, y, square = Tensor(A), Tensor(B), Tensor(uniform(20, 20))
    for _ in range(2):
        close(gemmlab.gemm(x, y), A @ B)
        close(gemmlab.gemm(x, square), A @ square.values)
        close(gemmlab.gemm(x, square, trans_b=True), A @ square.values.T)
        close(gemmlab.gemm(x, Tensor(square.values.T)), A @ square.values.T)
        close(gemmlab.gemm(x, y, beta=2, c=Tensor(C)), A @ B + 2 * C)
        close(gemmlab.gemm(x, y, beta=2, c=Tensor(C), out=Tensor(np.empty_like(C))), A @ B + 2 * C)
        close(gemmlab.gemm(Tensor(np.stack([A, A])), y), np.stack([A @ B, A @ B]))
        close(gemmlab.gemm(x, y, kernel="naive"), A @ B)
        assert driver.launches[-1][0].startswith("naive<")
        close(gemmlab.gemm(x, y, kernel="naive", config={"BM": 8}), A @ B)
        assert driver.launches[-1][0] == "naive<8, 32, 16>"
        with pytest.raises(ArgumentTypeError, match="dtype float64"):
            gemmlab.gemm(x, Tensor(B.astype(np.float64)))
        with pytest.raises(UsageError, match="there is no c"):
            gemmlab.gemm(x, y, beta=1.0)
        with pytest.raises(UsageError, match="there is no c"):
            gemmlab.gemm(x, y, beta=1.0, out=Tensor(np.empty_like(C)))
        with pytest.raises(UsageError, match="threads"):
            gemmlab.gemm(x, y, threads=1)
        # Equal to a flag that is known, and none.
        with pytest.raises(ArgumentTypeError, match=r"trans_b is 1\.0"):
            gemmlab.gemm(x, square, trans_b=1.0)  # type: ignore[arg-type]
        for alpha in (10**400, np.ones(2), "1"):
            with pytest.raises(ArgumentTypeError, match="not a real number"):
                gemmlab.gemm(x, y, alpha=alpha)  # type: ignore[arg-type]
        with pytest.raises(ArgumentTypeError, match="not a real number"):
            gemmlab.gemm(x, y, beta=np.ones(2))


def test_addresses_off_16_bytes_are_the_same_case(driver: GemmDriver) -> None:
    room = np.zeros(16 * 16 + 8, np.float32)
    start = -room.ctypes.data // 4 % 4
    for offset in (0, 1, 4, 2):
        first = start + offset
        x = Tensor(room[first : first + 256].reshape(16, 16))
        close(gemmlab.gemm(x, x, out=Tensor(np.empty((16, 16), np.float32))), np.zeros((16, 16)))
    assert len(cuda_again._entries) == 1
    assert len(driver.launches) == 4


def test_cupy_s_calls_again_with_another_gpu_current(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch, settled: Callable[[], None]
) -> None:
    play_cupy(monkeypatch, 7)
    close(gemmlab.gemm(Array(A), Array(B)), A @ B)
    settled()
    found = gemmlab.gemm(Array(A), Array(B))
    assert isinstance(found, Array)
    close(found, A @ B)
    assert [launch[-1] for launch in driver.launches] == [7, 7]


@pytest.mark.usefixtures("driver")
def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_again, "_MOST_ENTRIES", 3)
    for n in range(1, 9):
        for _ in range(2):
            close(gemmlab.gemm(Tensor(A), Tensor(B[:, :n])), A @ B[:, :n])
        assert 1 <= len(cuda_again._entries) <= 3


def test_two_calls_at_once_do_not_meet_in_one_block_of_arguments(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    gemmlab.gemm(Tensor(A), Tensor(B))
    both, launch, results = threading.Barrier(2, timeout=60), driver.launch_kernel, dict[float, Any]()

    def once_both_have_written_theirs(function: str, *arguments: Any) -> int:
        both.wait()
        return launch(function, *arguments)

    monkeypatch.setattr(driver, "launch_kernel", once_both_have_written_theirs)

    def call(alpha: float) -> None:
        results[alpha] = gemmlab.gemm(Tensor(A * np.float32(alpha)), Tensor(B), alpha=alpha)

    threads = [threading.Thread(target=call, args=(alpha,)) for alpha in (2.0, 3.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for alpha in (2.0, 3.0):
        close(results[alpha], alpha**2 * (A @ B))
