"""The device and the rungs of a call or a command line that names none."""

from __future__ import annotations

from collections.abc import Iterable

from gemmlab.core.errors import DeviceError
from gemmlab.core.log import notice
from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
from gemmlab.kernels.by_name import NamedKernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.rungs_on import rungs_on


def open_for(name: str | None, kernels: Iterable[NamedKernel], mode: str | None = None) -> Device:
    """Open the device of that name. Without a name open the CPU or, if all kernels are for GPUs, a GPU or else an
    emulated one.

    A notice says that there is no GPU. `mode` is passed to `open_device`. Raises `DeviceError`, `UsageError`.
    """
    if name is not None:
        return open_device(name, mode)
    if {one.kernel.device for one in kernels} != {"cuda"}:
        return open_device("cpu", mode)
    return open_gpu(mode, "this is run on {}")


def open_gpu(mode: str | None, instead: str) -> Device:
    """Open a GPU or else an emulated one; a notice gives the reason and says `instead`, with the device in place of
    `{}`.
    """
    try:
        return open_device("cuda", mode)
    except DeviceError as error:
        device = open_device("emulated", mode)
        notice(f"{error}; so {instead.format(device.id)}")
        return device


def rungs_here(op: str, device: Device) -> tuple[Kernel, ...]:
    """Return the rungs that run on an open device; a notice names each of the others and its requirements."""
    found = rungs_on(op, device)
    for line in found.left_out:
        notice(line)
    return found.kernels
