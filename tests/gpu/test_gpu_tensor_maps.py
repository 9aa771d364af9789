"""Kernels with tensor maps on a GPU: the driver's maps, addresses that change from call to call, sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import UsageError
from gemmlab.core.tensor_map import decode
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem

OP = GemmOp()
MAPPED = ("tma_pipeline", "warp_specialized", "persistent", "multicast")


@pytest.fixture(autouse=True)
def hopper(gpu: CudaDevice) -> None:
    if gpu.target({}) != "sm_90":
        pytest.skip(f"wgmma runs on sm_90a alone; this is {gpu.target({})}")


@pytest.mark.parametrize("name", MAPPED)
def test_the_driver_makes_the_same_maps(name: str, gpu: CudaDevice) -> None:
    problem = GemmProblem(300, 200, 100, lda=104, ldb=204)
    arrays = OP.fill(problem, np.random.default_rng(0))
    flat = {key: np.ascontiguousarray(values).reshape(-1) for key, values in arrays.items()}
    bound = place(find_kernel(name), gpu).bind(OP, problem, {key: gpu.upload(values) for key, values in flat.items()})
    maps = [argument.tobytes() for argument in bound.launches[0].args if getattr(argument, "nbytes", 0) == 128]
    assert len(maps) == 2
    assert [gpu.tensor_map(decode(each)) for each in maps] == maps


@pytest.mark.parametrize("name", MAPPED)
def test_its_sums_are_near_the_emulator_s(name: str, gpu: CudaDevice) -> None:
    """Inputs are rounded alike, so sums differ by what a tensor core loses, not by what rounding of inputs costs."""
    problem = GemmProblem(150, 140, 100)
    arrays = OP.fill(problem, np.random.default_rng(0))
    flat = {key: np.ascontiguousarray(values).reshape(-1) for key, values in arrays.items()}
    found = []
    for device in (gpu, open_device("emulated:sm_90a")):
        buffers = {key: device.upload(values) for key, values in flat.items()}
        bound = place(find_kernel(name), device).bind(OP, problem, buffers)
        bound.run()
        found.append(np.empty(150 * 140, np.float32))
        bound.download("c", found[-1])
    assert np.abs(found[0] - found[1]).max() <= 100 * 2.0**-22


@pytest.mark.parametrize("name", MAPPED)
def test_each_call_s_own_addresses_are_in_the_maps(name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    for seed in range(3):
        torch.manual_seed(seed)
        a, b = torch.rand(300, 200, device="cuda") - 0.5, torch.rand(200, 260, device="cuda") - 0.5
        found = gemmlab.gemm(a, b, kernel=name, precision="tf32")
        bound = 2.0**-9 * (a.abs().double() @ b.abs().double())
        assert bool(((found.double() - a.double() @ b.double()).abs() <= bound).all())
    with pytest.raises(UsageError, match=f"{name} needs operands that begin on 16 bytes"):
        gemmlab.gemm(torch.rand(1 + 300 * 200, device="cuda")[1:].view(300, 200), b, kernel=name, precision="tf32")


def test_operands_without_a_map_are_multiplied_all_the_same() -> None:
    torch: Any = pytest.importorskip("torch")
    b = torch.rand(1000, 1000, device="cuda")
    for a in (
        torch.rand(1 + 1000 * 1000, device="cuda")[1:].view(1000, 1000),
        torch.rand(1000, 1001, device="cuda")[:, 1:],
    ):
        found = gemmlab.gemm(a, b, precision="tf32")
        assert bool(((found.double() - a.double() @ b.double()).abs() <= 2.0**-9 * (a.double() @ b.double())).all())
