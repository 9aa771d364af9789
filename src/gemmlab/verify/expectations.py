"""Check the statements of a kernel's file about its counters, on a device that counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gemmlab.core.errors import UsageError
from gemmlab.devices.device import CountingDevice, Device
from gemmlab.kernels.bound import place
from gemmlab.kernels.fitting import with_factors
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.op import Op
from gemmlab.verify.guarded_run import GuardedRun


def require_known_names(kernel: Kernel, op: Op) -> None:
    """Raise `UsageError`, with file and line, for a statement with a name that nothing counted or given has."""
    for expectation in kernel.expect:
        (problem,) = op.parse_sizes(expectation.shape)
        scalars = op.scalars(problem)
        expectation.check_names(kernel.instantiate(kernel.configure(expectation.config), scalars), scalars)


def require_counters(kernel: Kernel, device: Device) -> None:
    """Raise `UsageError` for an exercise on a device that does not count: nothing would judge it there."""
    if any(expectation.hidden for expectation in kernel.expect) and not isinstance(device, CountingDevice):
        raise UsageError(f"{kernel.id} is an exercise, which counters judge: --device emulated, not {device.id}")


def judge_claims(kernel: Kernel, device: Device, op: Op, *, seed: int = 0) -> Iterator[tuple[Any, str]]:
    """For each statement, yield its problem, and the counted value if the statement is wrong, else an empty text.

    Yields nothing if the device does not count. Raises `UsageError` for a statement about
    something that is not counted.
    """
    for expectation in kernel.expect if isinstance(device, CountingDevice) else ():
        (stated,) = op.parse_sizes(expectation.shape)
        problem = with_factors(kernel, op, stated)
        placed = place(kernel, device, expectation.config)
        observation = GuardedRun(placed, op, problem, op.fill(problem, np.random.default_rng(seed))).run()
        if observation is not None:
            scalars = op.scalars(problem)
            values = kernel.instantiate(placed.config, scalars)
            yield problem, expectation.verdict(observation.counters, values, scalars)
