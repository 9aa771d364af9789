"""Devices by name: `cpu`, `cuda[:N]`, `emulated[:sm_XX]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING

from gemmlab.core.errors import DeviceError, UsageError

if TYPE_CHECKING:
    from gemmlab.devices.device import Device

GRAMMAR = "cpu, cuda, cuda:N, emulated, emulated:sm_XX"
RUNS: Mapping[str, str] = MappingProxyType({"cpu": "cpu", "cuda": "cuda", "emulated": "cuda"})
"""Family of devices -> the kernels they run, as `Kernel.device` names them."""
DEFAULT_ARCH = "sm_90"
_WHICH = {"cpu": r"", "cuda": r"[0-9]{1,3}", "emulated": r"sm_[0-9]{2,3}"}
_MODES = {"cpu": ("warm", "cold"), "cuda": ("cold", "warm"), "emulated": ("",)}


@dataclass(frozen=True, slots=True)
class DeviceName:
    """A parsed name."""

    family: str
    which: str
    """GPU number or architecture; empty for the only or the first one."""

    @property
    def kernels(self) -> str:
        """The kernels that run there: `"cpu"` or `"cuda"`."""
        return RUNS[self.family]

    def __str__(self) -> str:
        return f"{self.family}:{self.which}" if self.which else self.family


def parse_device(text: str) -> DeviceName:
    """A device's name taken apart, whether or not there is such a device here; `DeviceError` for anything else."""
    family, colon, which = text.partition(":")
    if family not in RUNS or (colon and (not _WHICH[family] or not re.fullmatch(_WHICH[family], which))):
        raise DeviceError(f"no device named {text!r}; devices: {GRAMMAR}")
    return DeviceName(family, which)


def modes(name: DeviceName) -> tuple[str, ...]:
    """How a device can time: with `"cold"` or `"warm"` caches, its default first; `""` where time means nothing."""
    return _MODES[name.family]


def open_device(text: str, mode: str | None = None) -> Device:
    """The device of that name. `DeviceError` says why there is none, `UsageError` refuses a mode it does not have."""
    name = parse_device(text)
    if mode is not None and mode not in modes(name):
        known = ", ".join(filter(None, modes(name))) or "none"
        raise UsageError(f"the device {name} does not time with {mode} caches; modes: {known}")
    if name.family == "cpu":
        from gemmlab.devices.cpu import CpuDevice

        return CpuDevice()
    if name.family == "cuda":
        from gemmlab.devices.cuda import CudaDevice

        return CudaDevice(int(name.which or 0), "warm" if mode == "warm" else "cold")
    return _emulated(name.which or DEFAULT_ARCH)


def _emulated(arch: str) -> Device:
    if find_spec("llvmlite") is None:
        raise DeviceError("the emulated device compiles what instructions do with llvmlite: pip install llvmlite")
    from gemmlab.devices.emulated import EmulatedDevice

    return EmulatedDevice(arch)
