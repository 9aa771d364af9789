"""The CUDA device on a driver made of Python: what is refused before the driver sees it, what a fault leaves behind."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.program import Artifact, Launch, Program
from gemmlab.devices import cuda_context
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_driver import Driver, KernelFaultError
from support.fake_driver import PARAMS, FakeModule

ARTIFACT = Artifact("double", "cubin", "sm_89", "double", b"\x7fELF", "0", "NVRTC 13")


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeModule]:
    fake = FakeModule()
    monkeypatch.setattr(cuda_context, "open_driver", lambda: Driver(fake))
    yield fake
    gc.collect()


@pytest.fixture
def device(module: FakeModule) -> CudaDevice:
    del module
    return CudaDevice()


def launch(device: CudaDevice, array: npt.NDArray[np.float32], **change: Any) -> Launch:
    base = Launch((device.upload(array), np.int32(array.size)), (1, 1, 1), (32, 1, 1))
    return replace(base, **change)


@pytest.mark.in_turns(20)
def test_a_gpu_that_is_not_there_is_refused_with_those_that_are(module: FakeModule) -> None:
    del module
    with pytest.raises(DeviceError, match="no device cuda:2; GPUs here: cuda:0, cuda:1"):
        CudaDevice(2)


@pytest.mark.in_turns(20)
def test_memory_goes_up_runs_and_comes_down(device: CudaDevice) -> None:
    data = np.arange(8, dtype=np.float32)
    request = launch(device, data)
    device.launch(device.load(ARTIFACT), request)
    out = np.empty(8, np.float32)
    device.download(request.args[0], out)
    assert out.tolist() == (2 * data).tolist()
    with pytest.raises(UsageError, match="32 bytes of the GPU do not fit"):
        device.download(request.args[0], np.empty(7, np.float32))


@pytest.mark.in_turns(20)
def test_memory_and_code_go_with_their_last_user(device: CudaDevice, module: FakeModule) -> None:
    buffer, loaded = device.allocate(100), device.load(ARTIFACT)
    assert (len(module.memory), module.modules) == (1, 1)
    device.free(buffer)
    device.free(buffer)
    del buffer, loaded
    gc.collect()
    assert (len(module.memory), module.modules) == (0, 0)


@pytest.mark.in_turns(20)
def test_code_is_loaded_once_and_only_where_it_runs(device: CudaDevice) -> None:
    assert device.target({}) == "sm_89"
    loaded = device.load(ARTIFACT)
    assert loaded is device.load(replace(ARTIFACT, compiler="another"))
    kept = device.load(replace(ARTIFACT, target="sm_86", digest="1"))
    assert kept.param_bytes == PARAMS
    for target in ("sm_90", "sm_75", "sm_86a", "sm_120"):
        with pytest.raises(DeviceError, match=f"double is for {target}; A GPU runs code for sm_89"):
            device.load(replace(ARTIFACT, target=target))
    with pytest.raises(DeviceError, match="double: missing: cuModuleGetFunction failed: CUDA_ERROR_NOT_FOUND"):
        device.load(replace(ARTIFACT, entry="missing"))
    with pytest.raises(UsageError, match="loads cubins, not a object"):
        device.load(replace(ARTIFACT, kind="object"))
    with pytest.raises(UsageError, match="runs cuda code"):
        device.build(Program("k", "llvm", "sm_89", "k", "", lambda: ""))


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"threads": (257, 1, 1)}, UsageError, "257 threads a block; with its registers at most 256 run"),
        ({"grid": (1, 65536, 1)}, UsageError, "a grid of"),
        ({"grid": (0, 1, 1)}, UsageError, "a grid of"),
        ({"smem_bytes": 99_001}, DeviceError, "needs 100001 bytes of shared memory a block; A GPU has 100000"),
        ({"args": (np.uint64(0),)}, UsageError, r"takes arguments of \(8, 4\) bytes and got \(8,\)"),
        ({"args": (np.uint64(0), np.int64(1))}, UsageError, r"got \(8, 8\)"),
        ({"args": (np.uint64(0), 1)}, UsageError, "argument 1 is a int"),
    ],
)
def test_a_launch_that_cannot_run_never_reaches_the_driver(
    change: dict[str, Any], error: type[Exception], said: str, device: CudaDevice
) -> None:
    with pytest.raises(error, match=said):
        device.launch(device.load(ARTIFACT), launch(device, np.zeros(4, np.float32), **change))


@pytest.mark.in_turns(20)
def test_a_launch_asks_for_more_shared_memory_once(device: CudaDevice, module: FakeModule) -> None:
    loaded, data = device.load(ARTIFACT), np.zeros(4, np.float32)
    for smem_bytes in (48_000, 50_000, 49_000, 60_000):
        device.launch(loaded, launch(device, data, smem_bytes=smem_bytes))
    asked = [value for name, value in module.attributes if "DYNAMIC_SHARED" in name]
    assert asked == [50_000, 60_000]


def test_a_kernel_that_breaks_is_named_and_nothing_runs_afterwards(device: CudaDevice) -> None:
    request = launch(device, np.zeros(4, np.float32))
    wild = device.load(replace(ARTIFACT, kernel="wild", entry="wild", digest="2"))
    with pytest.raises(KernelFaultError, match="wild: it reads or writes memory that is not its own"):
        device.launch(wild, request)
    with pytest.raises(DeviceError, match="the GPU context was lost when wild broke"):
        device.upload(np.zeros(4))


@pytest.mark.in_turns(20)
def test_an_array_of_another_package_must_lie_on_this_gpu(device: CudaDevice) -> None:
    class Other:
        __cuda_array_interface__ = {"shape": (4,), "typestr": "<f4", "data": (4096, False), "version": 3}  # noqa: RUF012

    with pytest.raises(DeviceError, match="the array lies on cuda:1, not on cuda:0"):
        device.upload(Other())
