"""Products in pieces on a GPU that is played: streams run late, so what does not wait for an event reads too early."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gemmlab
from gemmlab.core.errors import UsageError
from gemmlab.devices.cuda_driver import Driver
from gemmlab.pieces import cuda_carrier, host_link
from support import gemm_on_gpu
from support.fake_streams import StreamsDriver
from support.least_pieces import Stopped, in_two_runs, stop_at
from support.stores import Store

Float32Array = npt.NDArray[np.float32]
M, N, K = 700, 900, 130


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], StreamsDriver]]:
    generators = []

    def begin(seed: int) -> StreamsDriver:
        fake = StreamsDriver(seed=seed)
        monkeypatch.setattr(gemm_on_gpu, "GemmDriver", lambda: fake)
        generators.append(gemm_on_gpu.played_driver(monkeypatch))
        next(generators[-1])
        opened = Driver(fake)
        monkeypatch.setattr(cuda_carrier, "open_driver", lambda: opened)
        # A ring that is smaller than a panel and than a row of C.
        monkeypatch.setattr(host_link, "BUFFER_BYTES", 50_000)
        monkeypatch.setattr(host_link, "BUFFERS", 2)
        return fake

    yield begin
    for generator in generators:
        next(generator, None)


def whole_numbers(*shape: int, seed: int = 0) -> Float32Array:
    """Their sums are exact, so that any order of them has the same bits."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


def needed(share: float, **how: Any) -> int:
    plan = gemmlab.explain_choice((M, K), (K, N), device="H200", memory_bytes=1 << 30, **how).pieces
    assert plan is not None
    return int(share * plan.device_bytes)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.sampled(2)
def test_every_order_of_the_streams_gives_the_product(play: Callable[[int], StreamsDriver], seed: int) -> None:
    driver = play(seed)
    a, b, c = whole_numbers(M, K, seed=1), whole_numbers(K, N, seed=2), whole_numbers(M, N, seed=3)
    out = np.full((M, N), np.nan, np.float32)
    seen: list[tuple[int, int]] = []
    found = gemmlab.gemm(
        a,
        b,
        c=c,
        alpha=2,
        beta=3,
        out=out,
        device="cuda:1",
        memory_bytes=(allowed := needed(0.45)),
        progress=lambda *now: seen.append(now),
    )
    assert found is out
    assert np.array_equal(out, 2 * (a @ b) + 3 * c)
    assert seen[0][0] == 0
    assert seen[-1][0] == seen[-1][1] > 4
    assert driver.most - driver.allocated <= allowed
    assert not any(driver.queues.values())


def test_copies_run_while_products_are_queued(play: Callable[[int], StreamsDriver]) -> None:
    driver = play(1)
    gemmlab.gemm(whole_numbers(M, K), whole_numbers(K, N), device="cuda:1", memory_bytes=needed(0.45))
    products = [index for index, what in enumerate(driver.ran) if what == "product"]
    between = [what for what in driver.ran[products[0] : products[-1]] if what != "product"]
    assert {"in", "out"} <= set(between)
    streams = {launch[-1] for launch in driver.launches}
    assert len(streams) == 1


def test_tickets_are_zero_after_pieces_of_other_extents(play: Callable[[int], StreamsDriver]) -> None:
    driver = play(6)
    a, b = whole_numbers(M, K, seed=1), whole_numbers(K, N, seed=2)
    how: dict[str, Any] = {"kernel": "split_k", "config": {"SPLITS": 2}}
    found = gemmlab.gemm(a, b, device="cuda:1", memory_bytes=needed(0.45, **how), **how)
    assert np.array_equal(found, a @ b)
    assert len(driver.tickets) > 4
    assert not any(driver.tickets)


@pytest.mark.parametrize("pinned", ["a", "b", "out", "all"])
def test_pinned_arrays_are_copied_where_they_lie(play: Callable[[int], StreamsDriver], pinned: str) -> None:
    driver = play(2)
    arrays: dict[str, Any] = {
        "a": whole_numbers(M, K),
        "b": whole_numbers(K, N, seed=4),
        "out": np.full((M, N), np.nan, np.float32),
    }
    for name, array in arrays.items():
        if pinned in (name, "all"):
            driver.pinned.append((array.ctypes.data, array.ctypes.data + array.nbytes))
    before = len(driver.memory)
    gemmlab.gemm(**arrays, device="cuda:1", memory_bytes=needed(0.45))
    assert np.array_equal(arrays["out"], arrays["a"] @ arrays["b"])
    assert len(driver.memory) <= before + 1


@pytest.mark.parametrize("chunks", [(10, 6), (100, 130), (128, 128)])
def test_pieces_of_whole_chunks_in_two_runs(
    play: Callable[[int], StreamsDriver], tmp_path: Path, chunks: tuple[int, int]
) -> None:
    play(7)
    a, b, c = whole_numbers(M, K, seed=1), whole_numbers(K, N, seed=2), whole_numbers(M, N, seed=3)
    out = Store(np.full((M, N), np.nan, np.float32), chunks)
    how: dict[str, Any] = {"device": "cuda:1", "memory_bytes": needed(0.7), "checkpoint": tmp_path / "journal"}
    complete, count = in_two_runs(2, a=a, b=b, c=c, beta=3, out=out, **how)
    assert 0 < complete < count
    head = json.loads((tmp_path / "journal").read_text().splitlines()[0])
    assert head["rows"] % chunks[0] == 0 or head["rows"] == M
    assert head["cols"] % chunks[1] == 0 or head["cols"] == N
    assert np.array_equal(out.values, a @ b + 3 * c)


def test_a_pinned_operand_with_one_other_element_is_refused(
    play: Callable[[int], StreamsDriver], tmp_path: Path
) -> None:
    """The GPU itself copies it, so no thread of the host sees its elements."""
    driver = play(2)
    a, b = whole_numbers(M, K, seed=1), whole_numbers(K, N, seed=2)
    driver.pinned += [(x.ctypes.data, x.ctypes.data + x.nbytes) for x in (a, b)]
    out = Store(np.full((M, N), np.nan, np.float32))
    how: dict[str, Any] = {"device": "cuda:1", "memory_bytes": needed(0.45), "checkpoint": tmp_path / "journal"}
    with pytest.raises(Stopped):
        gemmlab.gemm(a, b, out=out, progress=stop_at(2), **how)
    b[77, 501] += 1
    with pytest.raises(UsageError, match="gemm: b holds other numbers than when this checkpoint was begun"):
        gemmlab.gemm(a, b, out=out, **how)


def test_layouts_and_part_of_a_file(play: Callable[[int], StreamsDriver], tmp_path: Path) -> None:
    play(3)
    a, b = whole_numbers(K, M), whole_numbers(N, K, seed=5)
    file = np.memmap(tmp_path / "c", np.float32, "w+", shape=(M + 3, N + 5))
    file[:] = 7
    out = file[2:-1, 1:-4]
    gemmlab.gemm(a, b, trans_a=True, trans_b=True, out=out, device="cuda:1", memory_bytes=needed(0.5))
    assert np.array_equal(out, a.T @ b.T)
    out[:] = 7
    assert np.all(file == 7)


def test_a_failing_store_ends_the_call_and_frees_everything(play: Callable[[int], StreamsDriver]) -> None:
    driver = play(4)

    class Full:
        shape, dtype = (M, N), np.dtype(np.float32)

        def __getitem__(self, _place: Any) -> Float32Array:
            raise AssertionError

        def __setitem__(self, _place: Any, _values: Float32Array) -> None:
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        gemmlab.gemm(whole_numbers(M, K), whole_numbers(K, N), out=Full(), device="cuda:1", memory_bytes=needed(0.45))
    assert driver.allocated == 0
    assert not driver.memory


def test_memory_that_is_too_little_and_threads_are_refused(play: Callable[[int], StreamsDriver]) -> None:
    play(5)
    a, b = whole_numbers(M, K), whole_numbers(K, N)
    with pytest.raises(
        UsageError, match=r"memory_bytes is 1,000; 700 x 900 with 130 terms takes at least [0-9,]+, for"
    ):
        gemmlab.gemm(a, b, device="cuda:1", memory_bytes=1000)
    with pytest.raises(UsageError, match="threads are for a product on the CPU"):
        gemmlab.gemm(a, b, device="cuda:1", threads=2, memory_bytes=1 << 30)
