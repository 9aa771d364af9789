"""Names of devices: `cpu`, `cuda[:N]`, `emulated[:sm_XX]`. Only this file parses them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gemmlab.core.errors import DeviceError

GRAMMAR = "cpu, cuda, cuda:N, emulated, emulated:sm_XX"
RUNS: Mapping[str, str] = MappingProxyType({"cpu": "cpu", "cuda": "cuda", "emulated": "cuda"})
"""Family of devices -> the kind of kernels that it runs, as `Kernel.device` names it."""
_WHICH = {"cpu": r"", "cuda": r"[0-9]{1,3}", "emulated": r"sm_[0-9]{2,3}[af]?"}
_MODES = {"cpu": ("warm", "cold"), "cuda": ("cold", "warm"), "emulated": ("",)}


@dataclass(frozen=True, slots=True)
class DeviceName:
    """A device's name, parsed. The device need not exist on this machine."""

    family: str
    """The family of devices: `"cpu"`, `"cuda"` or `"emulated"`."""
    which: str = ""
    """Number of the GPU, or architecture of the emulated one; empty for the family's default device."""

    @property
    def kernels(self) -> str:
        """The kind of kernels that run on the device: `"cpu"` or `"cuda"`, as `Kernel.device` names them."""
        return RUNS[self.family]

    @property
    def modes(self) -> tuple[str, ...]:
        """The states of caches with which the device can time, `"cold"` and `"warm"`, the default first; only `""` for
        an emulated GPU, whose times mean nothing.
        """
        return _MODES[self.family]

    def __str__(self) -> str:
        return f"{self.family}:{self.which}" if self.which else self.family


CPU = DeviceName("cpu")


class DeviceIdentity:
    """Base class of devices: properties that follow from `device_name`."""

    device_name: DeviceName

    @property
    def id(self) -> str:
        """The name as text: `"cpu"`, `"cuda:0"`, `"emulated:sm_90"`."""
        return str(self.device_name)

    @property
    def family(self) -> str:
        """The family of the device: `"cpu"`, `"cuda"` or `"emulated"`."""
        return self.device_name.family

    @property
    def kernels(self) -> str:
        """The kind of kernels that run on the device: `"cpu"` or `"cuda"`, as `Kernel.device` names them."""
        return self.device_name.kernels


def family_part(text: str) -> str:
    """Return the part of a device's name before the colon. The name is not checked."""
    return text.partition(":")[0]


def parse_device(text: str) -> DeviceName:
    """Parse a device's name. Raises `DeviceError` for a malformed name, but not for a device that does not exist
    here.
    """
    family, colon, which = text.partition(":")
    if family not in RUNS or (colon and (not _WHICH[family] or not re.fullmatch(_WHICH[family], which))):
        raise DeviceError(f"no device named {text!r}; devices: {GRAMMAR}")
    return DeviceName(family, which)
