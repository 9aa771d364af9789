"""The kernels of an operation's ladder (its rungs) that run on a device, and the reasons why the other rungs do not.

Also the error if none does.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.core.architecture import is_only, runs
from gemmlab.core.errors import UsageError
from gemmlab.devices.device import Device
from gemmlab.kernels.catalog import ladder
from gemmlab.kernels.kernel import Kernel

_DEVICES = {"cpu": "cpu", "cuda": "cuda or emulated"}
"""A family of kernels -> the devices that run them, in words."""


@dataclass(frozen=True, slots=True)
class Rungs:
    """The rungs of a ladder that a device runs, in order, and a line for each other rung that says why not."""

    kernels: tuple[Kernel, ...]
    left_out: tuple[str, ...] = ()


def rungs_on(op: str, device: Device) -> Rungs:
    """Return the rungs for an operation that run on an open device."""
    kernels, left_out = list[Kernel](), list[str]()
    for kernel in ladder(op, device.kernels):
        target = device.target(kernel.params)
        if why := kernel.unavailable():
            left_out.append(f"left out: {kernel.id}: {why}")
        elif runs(kernel.arch, target):
            kernels.append(kernel)
        else:
            newer = "" if is_only(kernel.arch) else " or newer"
            left_out.append(f"left out: {kernel.id} is for {kernel.arch}{newer}, {device.id} runs {target}")
    return Rungs(tuple(kernels), tuple(left_out))


def no_ladder(op: str, device: Device) -> UsageError:
    """Return the error for an operation without rungs on a device; the message names devices that have some."""
    others = [text for family, text in _DEVICES.items() if family != device.kernels and ladder(op, family)]
    return UsageError(f"no ladder of {op} for {device.id}" + (f"; it has one for {others[0]}" if others else ""))
