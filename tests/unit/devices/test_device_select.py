"""Devices by name, and what is said where one is missing."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gemmlab.core.errors import CompileError, DeviceError, UsageError
from gemmlab.devices import cuda_driver, select
from gemmlab.devices.cuda_driver import Driver, KernelFaultError, open_driver
from gemmlab.devices.device import CountingDevice
from gemmlab.devices.device_name import DeviceName, parse_device
from gemmlab.devices.select import open_device


@pytest.mark.parametrize(
    ("text", "family", "which", "kernels"),
    [
        ("cpu", "cpu", "", "cpu"),
        ("cuda", "cuda", "", "cuda"),
        ("cuda:3", "cuda", "3", "cuda"),
        ("emulated", "emulated", "", "cuda"),
        ("emulated:sm_89", "emulated", "sm_89", "cuda"),
    ],
)
def test_names_are_taken_apart(text: str, family: str, which: str, kernels: str) -> None:
    name = parse_device(text)
    assert name == DeviceName(family, which)
    assert (name.kernels, str(name)) == (kernels, text)


@pytest.mark.parametrize(
    "text", ["tpu", "", "CPU", "cpu:0", "cpu:", "cuda:", "cuda:x", "cuda:-1", "emulated:90", "cuda:0:1"]
)
def test_other_names_are_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(DeviceError, match=r"no device named .*; devices: cpu, cuda, cuda:N, emulated, emulated:sm_XX"):
        parse_device(text)


def test_each_device_has_its_ways_to_time() -> None:
    ways = [parse_device(name).modes for name in ("cpu", "cuda", "emulated")]
    assert ways == [("warm", "cold"), ("cold", "warm"), ("",)]
    assert open_device("cpu", "warm").id == open_device("cpu", "cold").id == "cpu"
    with pytest.raises(UsageError, match="the device cpu cannot time with frozen caches; modes: warm, cold"):
        open_device("cpu", "frozen")
    with pytest.raises(UsageError, match="emulated cannot time with warm caches; modes: none"):
        open_device("emulated", "warm")


def test_a_device_knows_its_family_and_the_kernels_that_run_there() -> None:
    for device in (open_device("cpu"), open_device("emulated:sm_80")):
        assert parse_device(device.id) == device.device_name
        assert (device.family, device.kernels) == (device.device_name.family, device.device_name.kernels)
    assert (open_device("cpu").kernels, open_device("emulated").kernels) == ("cpu", "cuda")


def test_the_emulated_device_is_of_the_architecture_named() -> None:
    assert open_device("emulated").id == f"emulated:{select.DEFAULT_ARCH}"
    assert open_device("emulated:sm_80").id == "emulated:sm_80"
    assert isinstance(open_device("emulated"), CountingDevice)
    assert not isinstance(open_device("cpu"), CountingDevice)


def test_without_the_code_generator_there_is_no_emulated_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "find_spec", lambda _name: None)
    with pytest.raises(DeviceError, match="pip install llvmlite"):
        open_device("emulated")


class FakeDriver(ModuleType):
    """The binding's functions that opening a device calls, with statuses that a test sets."""

    def __init__(self, init: int = 0, version: int = 13000) -> None:
        super().__init__("driver")
        self.init, self.version = init, version

    def cuInit(self, _flags: int) -> tuple[int]:  # noqa: N802
        if self.init < 0:
            raise RuntimeError("libcuda.so.1 cannot be opened")
        return (self.init,)

    def cuDriverGetVersion(self) -> tuple[int, int]:  # noqa: N802
        return 0, self.version

    def cuGetErrorName(self, status: int) -> tuple[int, bytes]:  # noqa: N802
        return 0, {700: b"CUDA_ERROR_ILLEGAL_ADDRESS", 803: b"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}.get(status, b"OTHER")

    def cuGetErrorString(self, _status: int) -> tuple[int, bytes]:  # noqa: N802
        return 0, b"what it means"

    def cuFail(self, status: int) -> tuple[int, None]:  # noqa: N802
        return status, None


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Any:
    open_driver.cache_clear()
    monkeypatch.setattr(cuda_driver, "compiler_version", lambda: "NVRTC 13.5.37")
    yield
    open_driver.cache_clear()


def install(monkeypatch: pytest.MonkeyPatch, driver: ModuleType | None) -> None:
    """Let `from cuda.bindings import driver` give this, or fail."""
    bindings = None if driver is None else SimpleNamespace(driver=driver)
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)


def test_without_the_binding_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None)
    with pytest.raises(DeviceError, match=r"needs cuda-bindings .*pip install 'gemmlab\[cuda13\]'"):
        open_device("cuda")


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        (FakeDriver(init=-1), "no NVIDIA driver here for the cuda device; emulated"),
        (FakeDriver(init=100), "the NVIDIA driver sees no GPU"),
        (FakeDriver(init=803), "does not start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, what it means"),
        (
            FakeDriver(version=12080),
            r"supports CUDA 12\.8 and does not load .* NVRTC 13\.5\.37: .*gemmlab\[cuda12\]",
        ),
    ],
)
def test_what_keeps_a_gpu_from_being_used_is_said(
    driver: FakeDriver, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, driver)
    with pytest.raises(DeviceError, match=said) as raised:
        open_device("cuda:0")
    assert raised.value.exit_code == 3


def test_an_older_driver_serves_where_no_newer_compiler_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeDriver(version=12080))
    monkeypatch.setattr(cuda_driver, "compiler_version", lambda: "")
    assert open_driver().version == (12, 8)
    monkeypatch.setattr(cuda_driver, "compiler_version", lambda: "NVRTC 12.9.1")
    open_driver.cache_clear()
    assert open_driver().version == (12, 8)


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (2, MemoryError, "mine: the GPU has too little memory left"),
        (
            700,
            KernelFaultError,
            "mine: it reads or writes memory that is not its own .*the GPU context",
        ),
        (1, DeviceError, "mine: cuFail failed: OTHER, what it means"),
    ],
)
def test_statuses_become_errors(status: int, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        Driver(FakeDriver())("cuFail", status, what="mine")


def test_a_compiler_that_is_not_there_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    from gemmlab.toolchain import nvrtc

    def none() -> str:
        raise CompileError("no compiler")

    monkeypatch.setattr(nvrtc, "compiler", none)
    assert not cuda_driver.compiler_version()
