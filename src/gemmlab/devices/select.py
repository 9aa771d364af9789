"""Open devices by name."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.devices.device_name import parse_device

if TYPE_CHECKING:
    from gemmlab.devices.device import Device

DEFAULT_ARCH = "sm_90"


def open_device(text: str, mode: str | None = None) -> Device:
    """Return the device of that name. `mode` is the state of caches for timing, `"cold"` or `"warm"`.

    By default a GPU times with cold caches. Raises `DeviceError` that says why there is no such device, `UsageError`
    for a mode that the device does not have.
    """
    name = parse_device(text)
    if mode is not None and mode not in name.modes:
        known = ", ".join(filter(None, name.modes)) or "none"
        raise UsageError(f"the device {name} cannot time with {mode} caches; modes: {known}")
    if name.family == "cpu":
        from gemmlab.devices.cpu import CpuDevice

        return CpuDevice()
    if name.family == "cuda":
        from gemmlab.devices.cuda import CudaDevice

        return CudaDevice(int(name.which or 0), "warm" if mode == "warm" else "cold")
    return _emulated(name.which or DEFAULT_ARCH)


def _emulated(arch: str) -> Device:
    if find_spec("llvmlite") is None:
        raise DeviceError("the emulated device needs llvmlite to compile its instructions: pip install llvmlite")
    from gemmlab.devices.emulated import EmulatedDevice

    return EmulatedDevice(arch)
