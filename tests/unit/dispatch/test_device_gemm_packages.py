"""Arrays of packages on a GPU: what comes back is theirs, on their stream; what kernels cannot read they copy."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.arrays import on_gpu as interop
from gemmlab.arrays.on_gpu import DeviceArray
from gemmlab.dispatch import lending as held
from gemmlab.dispatch.results import DeviceResult
from support import fake_driver
from support.gemm_driver import GemmDriver
from support.gemm_on_gpu import A, B, C, close, played_driver
from support.gpu_arrays import Array, OnGpu, Tensor, play_cupy, play_torch

LEGACY = 1


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[GemmDriver]:
    yield from played_driver(monkeypatch)


def test_tensors_in_a_tensor_out_on_torch_s_stream(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    play_torch(monkeypatch, 99)
    found = gemmlab.gemm(Tensor(A), Tensor(B), beta=2, c=Tensor(C[:1]))
    assert isinstance(found, Tensor)
    close(found, A @ B + 2 * C[:1])
    # What kernels cannot read is copied by torch; beside a plain array the tensor decides.
    close(gemmlab.gemm(Tensor(np.repeat(A, 2, 1)[:, ::2]), OnGpu(B)), A @ B)
    assert isinstance(gemmlab.gemm(OnGpu(A), Tensor(B)), Tensor)
    assert {launch[-1] for launch in driver.launches} == {99}


def test_cupy_arrays_in_and_out(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    play_cupy(monkeypatch, 0)
    found = gemmlab.gemm(Array(A), Array(np.broadcast_to(B[:, :1], B.shape)), beta=1, c=Array(C))
    assert isinstance(found, Array)
    close(found, A @ np.broadcast_to(B[:, :1], B.shape) + C)
    assert driver.launches[0][-1] == LEGACY


class Jax(OnGpu):
    """JAX's: an interface that says nothing of a stream, DLPack that does, and results by `from_dlpack`."""

    version = 2

    def __dlpack__(self, *, stream: int) -> Any:
        raise AssertionError("`borrowed` below stands for it")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 1

    def __array_namespace__(self) -> Any:
        return SimpleNamespace(from_dlpack=lambda x: ("of JAX", x, x.__dlpack__(stream=44)))


def test_numba_s_arrays_come_back_as_such_and_nobody_waits(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type("DeviceNDArray", (OnGpu,), {"__module__": "numba.cuda.cudadrv.devicearray"})
    numba: Any = ModuleType("numba.cuda")
    numba.as_cuda_array = lambda array, sync: ("of Numba", array, sync)
    monkeypatch.setitem(sys.modules, "numba.cuda", numba)
    said, ours, sync = gemmlab.gemm(kind(A, 7), kind(B, 7))
    assert (said, sync) == ("of Numba", False)
    close(ours, A @ B)
    out = kind(np.empty_like(C), 7)
    assert gemmlab.gemm(kind(A, 7), kind(B, 7), out=out) is out
    assert [launch[-1] for launch in driver.launches] == [7, 7]


class Lender:
    """What keeps memory lent."""


@pytest.fixture
def lenders(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[Lender]]:
    """DLPack without cuda-core, whose capsules nobody looks into here; all that lent memory."""
    found = list[weakref.ref[Lender]]()

    def lent(value: Jax) -> DeviceArray:
        owner, x = Lender(), value.values
        found.append(weakref.ref(owner))
        return DeviceArray(x.ctypes.data, x.shape, x.strides, x.dtype, 1, LEGACY, False, owner, borrowed=True)

    class View:
        def __init__(self, array: Any) -> None:
            self.shown = array.__cuda_array_interface__

        def __dlpack__(self, *, stream: int) -> Any:
            return "capsule", self.shown["data"][0], stream

        @classmethod
        def from_cuda_array_interface(cls, array: Any, stream_ptr: int) -> View:
            assert stream_ptr == -1
            return cls(array)

    utils: Any = ModuleType("cuda.core.utils")
    utils.StridedMemoryView = View
    monkeypatch.setitem(sys.modules, "cuda.core.utils", utils)
    monkeypatch.setattr(interop, "_from_dlpack", lent)
    held._pending.clear()
    return found


@pytest.mark.usefixtures("lenders")
def test_jax_arrays_in_and_out_by_handshakes(driver: GemmDriver) -> None:
    kind, ours, capsule = gemmlab.gemm(Jax(A), Jax(B))
    assert (kind, type(ours)) == ("of JAX", DeviceResult)
    close(ours, A @ B)
    assert ours.__dlpack_device__() == (2, 1)
    assert capsule == ("capsule", ours.__cuda_array_interface__["data"][0], -1)
    assert driver.launches[-1][-1] == LEGACY
    # Operands are ready on our stream, and JAX's then waits for ours, after the launch.
    assert driver.events[-2:] == [("cuEventRecord", LEGACY), ("cuStreamWaitEvent", 44)]
    # No wait where none is needed or wanted; without a stream it is the legacy one.
    before = len(driver.events)
    for stream in (LEGACY, -1, None):
        ours.__dlpack__(stream=stream)
    assert len(driver.events) == before


@pytest.mark.usefixtures("lenders")
def test_a_result_for_another_stream_by_dlpack(driver: GemmDriver) -> None:
    found = gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 7))
    for stream, waiting in ((9, 9), (None, LEGACY)):
        found.__dlpack__(stream=stream)
        assert driver.events[-2:] == [("cuEventRecord", 7), ("cuStreamWaitEvent", waiting)]
    assert driver.contexts[-1] == "the caller's"
    assert found.__dlpack__(stream=-1, dl_device=(2, 1))[0] == "capsule"
    with pytest.raises(BufferError, match="stays on cuda:1"):
        found.__dlpack__(dl_device=(1, 0))


@pytest.mark.in_turns(20)
def test_what_is_lent_is_kept_until_the_work_on_it_is_done(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch, lenders: list[weakref.ref[Lender]]
) -> None:
    done = False
    monkeypatch.setitem(fake_driver._FUNCTIONS, "cuEventQuery", "event_query")
    monkeypatch.setattr(type(driver), "event_query", lambda _driver, _event: (0 if done else 600,), raising=False)
    for _ in range(3):
        gemmlab.gemm(Jax(A), Jax(B))
    gc.collect()
    assert [each() is not None for each in lenders] == [True] * 6
    done = True
    gemmlab.gemm(Jax(A), OnGpu(B))
    gc.collect()
    assert [each() is not None for each in lenders] == [False] * 7
    # What is not lent is not kept.
    gemmlab.gemm(OnGpu(A), OnGpu(B))
    assert not held._pending


def test_an_out_of_jax_stays_as_it_is(lenders: list[weakref.ref[Lender]]) -> None:
    fixed = C.copy()
    fixed.flags.writeable = False
    with pytest.raises(TypeError, match=r"out, a .*Jax on a GPU, is read-only"):
        gemmlab.gemm(Jax(A), Jax(B), out=Jax(fixed))
    assert len(lenders) == 3
