"""Arrays of packages on a GPU: what comes back is theirs, on their stream; what kernels cannot read they copy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from gemm_on_gpu import A, B, C, close, played_driver
from gpu_arrays import Array, GemmDriver, OnGpu, Tensor, play_cupy, play_torch

import gemmlab

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
