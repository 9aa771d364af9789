"""The ladder of a command that names no kernels: the rungs that the device runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from gemmlab.devices.device import Device
    from gemmlab.kernels.kernel import Kernel


def rungs_here(op: str, device: Device) -> tuple[Kernel, ...]:
    """Return the rungs that run on an open device; name the others, and what they need, on standard error."""
    from gemmlab.kernels.rungs_on import rungs_on

    found = rungs_on(op, device)
    for line in found.left_out:
        typer.echo(line, err=True)
    return found.kernels
