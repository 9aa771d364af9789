"""Products on a GPU without memory for their workspace: computed without it, or refused by the kernel's name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.dispatch.choice import choose
from gemmlab.dispatch.measurements import shipped_table
from gemmlab.dispatch.precision_rule import REQUESTS
from gemmlab.dispatch.waves import gpu_model
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm_problem import GemmProblem
from support.deep_products import DEEP_A, DEEP_B, needs
from support.gemm_driver import GemmDriver
from support.gemm_on_gpu import played_driver, uniform, values
from support.gpu_arrays import Array, OnGpu, Tensor, play_cupy, play_torch

LARGE_A, LARGE_B = uniform(300, 1100), uniform(1100, 260)
"""Operands for which every precision would choose a kernel with a workspace, if it chooses any."""


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[GemmDriver]:
    yield from played_driver(monkeypatch)


class OutOfMemoryError(RuntimeError):
    """As torch has it: no `MemoryError`."""


def starve_torch(monkeypatch: pytest.MonkeyPatch, starving: list[bool]) -> None:
    """Let torch's allocator refuse scratch memory, which is asked for as a row, while `starving` has `True`.

    A call keeps the allocator that it found, so this comes before the first one.
    """
    torch = sys.modules["torch"]
    real = torch.empty_strided

    def refuse(shape: tuple[int, ...], strides: tuple[int, ...], **how: Any) -> Any:
        if len(shape) == 1 and True in starving:
            raise OutOfMemoryError("CUDA out of memory")
        return real(shape, strides, **how)

    monkeypatch.setattr(torch, "OutOfMemoryError", OutOfMemoryError, raising=False)
    monkeypatch.setattr(torch, "empty_strided", refuse)


def starve_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Array.__init__

    def refuse(self: Array, what: Any, dtype: Any = np.float32) -> None:
        if isinstance(what, tuple) and len(what) == 1:
            raise MemoryError("Out of memory allocating")
        real(self, what, dtype)

    monkeypatch.setattr(Array, "__init__", refuse)


def starve_driver(driver: GemmDriver) -> None:
    real = driver._call
    driver.__dict__["_call"] = lambda name, *given: (2, 0) if name == "cuMemAllocAsync" else real(name, *given)


def kernels(driver: GemmDriver) -> set[str]:
    return {name.partition("<")[0] for name, *_ in driver.launches}


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("precision", REQUESTS)
def test_without_memory_for_a_workspace_multiply_adds_compute_every_precision(
    driver: GemmDriver, precision: str
) -> None:
    starve_driver(driver)
    found = gemmlab.gemm(OnGpu(LARGE_A, 7), OnGpu(LARGE_B, 7), precision=precision)
    np.testing.assert_allclose(values(found), LARGE_A @ LARGE_B, rtol=1e-3, atol=1e-3)
    assert not kernels(driver) & {"f16x3", "bf16x6", "bf16x9", "by_tile", "peak_simt"}
    assert driver.lent == {}


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("package", ["torch", "cupy"])
def test_a_package_without_memory_for_a_workspace(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    array: Any = Tensor if package == "torch" else Array
    if package == "torch":
        play_torch(monkeypatch, 9)
        starve_torch(monkeypatch, [True])
    else:
        play_cupy(monkeypatch, 9)
        starve_cupy(monkeypatch)
    out = array(LARGE_A @ LARGE_B)
    for beta in (0.0, 2.0):
        expected = LARGE_A @ LARGE_B + beta * out.values
        assert gemmlab.gemm(array(LARGE_A), array(LARGE_B), c=out, out=out, beta=beta, precision="bf16x6") is out
        np.testing.assert_allclose(values(out), expected, rtol=1e-3, atol=1e-3)
    assert kernels(driver) == {"split_k"}


@pytest.mark.in_turns(20)
def test_a_repeated_call_falls_back_as_long_as_memory_lacks(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_torch(monkeypatch, 9)
    starving: list[bool] = []
    starve_torch(monkeypatch, starving)

    def call() -> set[str]:
        driver.launches.clear()
        found = gemmlab.gemm(Tensor(LARGE_A), Tensor(LARGE_B), precision="bf16x6")
        np.testing.assert_allclose(values(found), LARGE_A @ LARGE_B, rtol=1e-3, atol=1e-3)
        return kernels(driver)

    assert call() == {"bf16x6"}
    starving.append(True)
    assert call() == call() == {"split_k"}
    starving.clear()
    assert call() == {"bf16x6"}


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("package", ["", "torch"])
def test_a_kernel_that_the_caller_names_is_not_replaced(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    play_torch(monkeypatch, 9)
    array: Any = Tensor if package else OnGpu
    starving: list[bool] = []
    starve_torch(monkeypatch, starving)
    call: dict[str, Any] = {"kernel": "stream_k"}
    gemmlab.gemm(array(DEEP_A), array(DEEP_B), **call)
    starving.append(True)
    starve_driver(driver)
    nbytes = needs(DEEP_A, DEEP_B, {**call, "config": {}}).nbytes
    with pytest.raises(MemoryError, match=rf"gemm: stream_k needs {nbytes:,} bytes .* for 70x150x3000.*name neither"):
        gemmlab.gemm(array(DEEP_A), array(DEEP_B), **call)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("gpu", ["h200", "a100", "t4"])
def test_what_takes_the_place_of_a_workspace_has_none(gpu: str) -> None:
    sizes = ((1, 4096, 4096), (64, 64, 65536), (300, 260, 1100), (4096, 4096, 64), (4096, 4096, 4096), (8, 9, 5))
    for layout, (m, n, k) in zip(("nn", "nt", "tn", "tt", "nn", "nn"), sizes, strict=True):
        if gpu == "t4" and layout != "nn":
            continue
        p = GemmProblem(m, n, k).with_layout(layout)
        found = choose(p, gpu_model(gpu), shipped_table(), precision="highest", reproducible=True)
        kernel = find_kernel(found.kernel)
        assert (found.workspace_bytes, kernel.tickets(p, found.config)) == (0, 0)
