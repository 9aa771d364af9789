"""The ladder of a call that names no kernels: the rungs that the device runs."""

from __future__ import annotations

from gemmlab.core.notices import notice
from gemmlab.devices.device import Device
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.rungs_on import rungs_on


def rungs_here(op: str, device: Device) -> tuple[Kernel, ...]:
    """Return the rungs that run on an open device; a notice names each of the others and its requirements."""
    found = rungs_on(op, device)
    for line in found.left_out:
        notice(line)
    return found.kernels
