"""Scratch memory of products on a GPU: whose it is, for how long, and what a launch finds in it."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import DeviceError
from gemmlab.dispatch import cuda_calls
from support.deep_products import DEEP, DEEP_A, DEEP_B, needs
from support.gemm_driver import GemmDriver
from support.gemm_on_gpu import A, B, C, close, played_driver, uniform, values
from support.gpu_arrays import Array, OnGpu, Tensor, play_cupy, play_torch

SPLIT: dict[str, dict[str, Any]] = {
    "split_k": {"kernel": "split_k", "config": {"SPLITS": 2, "BM": 32, "BN": 32, "BK": 8, "TM": 4, "KGROUPS": 1}},
    "stream_k": {"kernel": "stream_k", "config": {"BLOCKS": 2, "BM": 32, "BN": 32, "BK": 8, "TM": 4, "KGROUPS": 1}},
    "narrow_strip": {"kernel": "narrow_strip", "config": {"SPLITS": 2, "BK": 8}},
}
"""Calls whose blocks share k, with little scratch memory."""


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[GemmDriver]:
    yield from played_driver(monkeypatch)


def test_a_kernel_may_have_a_workspace_and_no_tickets(driver: GemmDriver) -> None:
    found = gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 7), kernel="mma_f16x3", precision="f16x3")
    close(found, A @ B)
    # Both launches of the product have the same one.
    first, second = driver.workspaces
    assert first == second != 0


def test_what_a_later_launch_reads_is_not_in_the_workspace_that_a_stream_s_calls_share(driver: GemmDriver) -> None:
    """Another thread's launch on the stream could write there between the two launches."""
    gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 7), **SPLIT["split_k"])
    ((shared, _),) = driver.scratch
    close(gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 7), kernel="mma_f16x3", precision="f16x3"), A @ B)
    first, second = driver.workspaces[-2:]
    assert first == second
    assert not shared <= first < shared + (1 << 16)


@pytest.mark.parametrize("name", SPLIT)
def test_launches_of_a_stream_share_a_small_workspace_and_tickets(driver: GemmDriver, name: str) -> None:
    small = needs(A, B, SPLIT[name])
    assert 0 < small.workspace_bytes <= 1 << 16
    assert small.tickets
    for stream in (7, 8, 7):
        close(gemmlab.gemm(OnGpu(A, stream), OnGpu(B, stream), **SPLIT[name]), A @ B)
    first, second, third = driver.scratch
    assert first == third
    assert not {*first} & {*second}
    # The tickets come first and are zero; the workspace begins behind all of them.
    assert all(workspace - tickets == 4 << 15 for workspace, tickets in driver.scratch)
    # Nothing but the memory of the two streams is left.
    assert len(driver.memory) == 2
    assert (driver.cleared, driver.lent) == ([], {})


def test_one_part_needs_none(driver: GemmDriver) -> None:
    close(gemmlab.gemm(OnGpu(A), OnGpu(B), kernel="split_k", config={"SPLITS": 1}), A @ B)
    assert driver.scratch == []


def test_an_unknown_package_s_workspace_is_allocated_and_freed_on_the_stream(driver: GemmDriver) -> None:
    calls = list[tuple[Any, ...]]()
    real = driver._call

    def call(name: str, *arguments: Any) -> Any:
        calls.append((name, *arguments))
        return real(name, *arguments)

    driver.__dict__["_call"] = call
    large = needs(DEEP_A, DEEP_B, DEEP)
    assert large.workspace_bytes > 1 << 16
    close(gemmlab.gemm(OnGpu(DEEP_A, 7), OnGpu(DEEP_B, 7), **DEEP), DEEP_A @ DEEP_B)
    ((workspace, tickets),) = driver.scratch
    order = [one for one in calls if one[0] in ("cuMemAllocAsync", "cuLaunchKernel", "cuMemFreeAsync")]
    (_, nbytes, where), _, (_, freed, after) = order
    assert [one[0] for one in order] == ["cuMemAllocAsync", "cuLaunchKernel", "cuMemFreeAsync"]
    assert (where, after) == (7, 7)
    assert freed <= workspace
    assert workspace + large.workspace_bytes <= freed + nbytes
    # The tickets are those of the stream.
    assert tickets in driver.memory
    assert (driver.cleared, driver.lent) == ([], {})


@pytest.mark.parametrize("name", SPLIT)
def test_a_captured_launch_has_tickets_of_its_own_which_it_clears(driver: GemmDriver, name: str) -> None:
    """A replay of its graph may run beside launches on the stream that was captured."""
    small = needs(A, B, SPLIT[name])
    gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 7), **SPLIT[name])
    driver.capturing.add(7)
    for _ in range(2):
        close(gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 7), **SPLIT[name]), A @ B)
    shared, *captured = driver.scratch
    for workspace, tickets in captured:
        assert not {workspace, tickets} & {*shared}
        assert tickets + 4 * small.tickets <= workspace
    assert driver.cleared == [(tickets, small.tickets, 7) for _, tickets in captured]
    assert driver.lent == {}
    # Another stream is not captured.
    gemmlab.gemm(OnGpu(A, 8), OnGpu(B, 8), **SPLIT[name])
    assert len(driver.cleared) == 2


@pytest.mark.parametrize(("play", "array"), [(play_torch, Tensor), (play_cupy, Array)])
@pytest.mark.parametrize("captured", [False, True])
def test_a_package_s_own_allocator_gives_the_workspace_first_and_again(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch, play: Callable[..., None], array: Any, captured: bool
) -> None:
    play(monkeypatch, 9)
    if captured:
        driver.capturing.add(9)
    made = watched(monkeypatch, array)
    # No configuration is named: calls with one are checked each time. So the kernel's own has to split k.
    call: dict[str, Any] = {"kernel": "stream_k"}
    large = needs(DEEP_A, DEEP_B, {**call, "config": {}})
    assert large.workspace_bytes > 1 << 16
    first = gemmlab.gemm(array(DEEP_A), array(DEEP_B), **call)
    monkeypatch.setattr(cuda_calls, "device_gemm", None)  # a call that is like the first does not come there
    again = gemmlab.gemm(array(DEEP_A), array(DEEP_B), **call)
    close(first, DEEP_A @ DEEP_B)
    close(again, DEEP_A @ DEEP_B)
    assert len(driver.scratch) == 2
    for workspace, tickets in driver.scratch:
        assert any(start <= workspace and workspace + large.workspace_bytes <= end for start, end in made)
        assert any(start <= tickets < end for start, end in made) is captured
        assert (tickets in driver.memory) is not captured
    assert len(driver.cleared) == 2 * captured
    assert all(stream == 9 for *_, stream in driver.cleared)
    assert driver.lent == {}


def watched(monkeypatch: pytest.MonkeyPatch, array: Any) -> set[tuple[int, int]]:
    """First addresses and ends of all arrays that a package makes from now on."""
    made = set[tuple[int, int]]()
    real = array.__init__

    def init(self: Any, *given: Any) -> None:
        real(self, *given)
        made.add((self.values.ctypes.data, self.values.ctypes.data + self.values.nbytes))

    monkeypatch.setattr(array, "__init__", init)
    return made


@pytest.mark.parametrize("captured", [False, True])
def test_memory_is_freed_when_a_launch_fails(driver: GemmDriver, captured: bool) -> None:
    if captured:
        driver.capturing.add(7)
    gemmlab.gemm(OnGpu(DEEP_A, 7), OnGpu(DEEP_B, 7), **DEEP)
    before = len(driver.memory)
    driver.__dict__["launch_kernel"] = lambda *_: (1,)
    with pytest.raises(DeviceError, match="cuLaunchKernel"):
        gemmlab.gemm(OnGpu(DEEP_A, 7), OnGpu(DEEP_B, 7), out=OnGpu(np.empty((70, 150), np.float32), 7), **DEEP)
    assert driver.lent == {}
    assert len(driver.memory) == before


@pytest.mark.in_turns(20)
def test_a_package_s_workspace_is_dropped_when_a_launch_fails(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_torch(monkeypatch, 9)
    alive = WeakSet[Tensor]()
    real = Tensor.__init__

    def init(self: Tensor, *given: Any) -> None:
        real(self, *given)
        alive.add(self)

    a, b, out = Tensor(DEEP_A), Tensor(DEEP_B), Tensor(np.empty((70, 150), np.float32))
    monkeypatch.setattr(Tensor, "__init__", init)
    driver.__dict__["launch_kernel"] = lambda *_: (1,)
    with pytest.raises(DeviceError, match="cuLaunchKernel"):
        gemmlab.gemm(a, b, out=out, **DEEP)
    gc.collect()
    assert not alive


@pytest.mark.in_turns(20)
def test_products_of_a_batch_share_one_piece(driver: GemmDriver) -> None:
    """They follow each other on the stream."""
    left = uniform(3, 70, 3000)
    found = gemmlab.gemm(OnGpu(left, 7), OnGpu(DEEP_B.copy(), 7), trans_a=False, **DEEP)
    np.testing.assert_allclose(values(found), left @ DEEP_B, rtol=1e-3, atol=1e-3)
    assert len(set(driver.scratch)) == 1
    stacked = uniform(2, 3000, 150)
    found = gemmlab.gemm(OnGpu(DEEP_A, 7), OnGpu(stacked, 7), out=OnGpu(np.empty((2, 70, 150), np.float32), 7), **DEEP)
    np.testing.assert_allclose(values(found), DEEP_A @ stacked, rtol=1e-3, atol=1e-3)
    assert len(driver.scratch) == len(driver.launches)
    assert len(set(driver.scratch[-2:])) == 1
    assert driver.lent == {}


def test_with_beta_a_split_product_adds_to_c(driver: GemmDriver) -> None:
    for call in SPLIT.values():
        out = OnGpu(C.copy(), 7)
        gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 7), alpha=0.5, beta=2, c=out, out=out, **call)
        close(out, 0.5 * A @ B + 2 * C)
    assert len(driver.scratch) == len(SPLIT)


SEVERAL: dict[str, Any] = {"kernel": "by_tile", "precision": "float32"}
"""A call of three launches. Between them its tickets are not zero."""


def end_after_one_launch(driver: GemmDriver, error: BaseException, arguments: tuple[Any, Any]) -> None:
    def fail(*_: Any) -> int:
        raise error

    # The first launch is `cuLaunchKernel`: it does not begin early.
    driver.__dict__["launch_kernel_ex"] = fail
    with pytest.raises(type(error)):
        gemmlab.gemm(*arguments, **SEVERAL)
    del driver.__dict__["launch_kernel_ex"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("package", [None, play_torch])
def test_after_a_call_that_ended_between_its_launches_tickets_are_zero(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch, package: Callable[..., None] | None, error: BaseException
) -> None:
    array: Any = Tensor if package else OnGpu
    if package:
        package(monkeypatch, 7)
    arguments = (array(A), array(B)) if package else (OnGpu(A, 7), OnGpu(B, 7))
    end_after_one_launch(driver, error, arguments)
    assert driver.lent == {}
    close(gemmlab.gemm(*arguments, **SPLIT["split_k"]), A @ B)
    # No call of one launch pays for it, and of the others only the next.
    assert driver.cleared == []
    for _ in range(2):
        close(gemmlab.gemm(*arguments, **SEVERAL), A @ B)
    ((start, count, stream),) = driver.cleared
    assert (start, stream) == (driver.scratch[-1][1], 7)
    assert count == 1 << 15


def test_tickets_that_cannot_be_cleared_are_cleared_by_a_later_call(driver: GemmDriver) -> None:
    arguments, real = (OnGpu(A, 7), OnGpu(B, 7)), driver._call
    gemmlab.gemm(*arguments, **SEVERAL)
    end_after_one_launch(driver, KeyboardInterrupt(), arguments)
    driver.__dict__["_call"] = lambda name, *given: (1,) if name == "cuMemsetD32Async" else real(name, *given)
    with pytest.raises(DeviceError, match="tickets: cuMemsetD32Async failed"):
        gemmlab.gemm(*arguments, **SEVERAL)
    del driver.__dict__["_call"]
    close(gemmlab.gemm(*arguments, **SEVERAL), A @ B)
    assert len(driver.cleared) == 1


def test_a_launch_of_another_thread_may_come_between_the_launches_of_a_call(driver: GemmDriver) -> None:
    """Threads may share a stream, and only calls of several launches wait for one another."""
    between, real = list[OnGpu](), driver.launch_kernel_ex

    def launch(*given: Any) -> int:
        status = real(*given)
        other = threading.Thread(
            target=lambda: between.append(gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 7), **SPLIT["split_k"]))
        )
        other.start()
        other.join()
        return status

    driver.__dict__["launch_kernel_ex"] = launch
    close(gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 7), **SEVERAL), A @ B)
    assert len(between) == 2
    for one in between:
        close(one, A @ B)


def test_a_captured_call_of_several_launches_has_tickets_of_its_own(driver: GemmDriver) -> None:
    gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 7), **SEVERAL)
    driver.capturing.add(7)
    close(gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 7), **SEVERAL), A @ B)
    (_, shared), (_, captured) = driver.scratch
    assert captured != shared
    assert [(start, stream) for start, _, stream in driver.cleared] == [(captured, 7)]
