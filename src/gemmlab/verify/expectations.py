"""Check the statements of a kernel's file about its counters (`expect`), on a device that counts.

The criteria of an exercise are such statements, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.core.errors import UsageError
from gemmlab.devices.device import CountingDevice, Device
from gemmlab.kernels.bound import place
from gemmlab.kernels.fitting import as_taken
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.op import Op
from gemmlab.verify.guarded_run import GuardedRun


def require_known_names(kernel: Kernel, op: Op) -> None:
    """Raise `UsageError`, with file and line, if a statement uses a name that is no counter, parameter or scalar."""
    for expectation in kernel.expect:
        (problem,) = op.parse_sizes(expectation.shape)
        scalars = op.scalars(problem)
        expectation.check_names(kernel.instantiate(kernel.configure(expectation.config), scalars), scalars)


def require_counters(kernel: Kernel, device: Device) -> None:
    """Raise `UsageError` if the kernel is an exercise with criteria and the device does not count."""
    if any(expectation.hidden for expectation in kernel.expect) and not isinstance(device, CountingDevice):
        raise UsageError(f"{kernel.id} is an exercise, which counters judge: --device emulated, not {device.id}")


def unjudged(kernel: Kernel, *, stated: bool) -> list[str]:
    """Return a remark if the kernel is an exercise and the user has `stated` sizes or values; else an empty list.

    The criteria of an exercise are judged only at the sizes and values that they state themselves.
    """
    if stated and any(expectation.hidden for expectation in kernel.expect):
        return ["is an exercise, whose criteria were not judged: check it without sizes and values for that"]
    return []


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of one statement of a kernel's file, or of one group of an exercise's criteria."""

    problem: Any
    broken: str
    """The statement with the counted values if they contradict it; else empty."""
    judgements: tuple[str, ...] = ()
    """For an exercise, each criterion with the counted values; else empty."""


def judge_claims(kernel: Kernel, device: Device, op: Op, *, seed: int = 0) -> Iterator[Judgement]:
    """Run the kernel at the size of each statement and judge the statement; yield nothing on a device that does not
    count.

    Raises `UsageError` for a statement about something that is not counted.
    """
    for expectation in kernel.expect if isinstance(device, CountingDevice) else ():
        (stated,) = op.parse_sizes(expectation.shape)
        problem = as_taken(kernel, op, stated)
        placed = place(kernel, device, expectation.config)
        observation = GuardedRun(placed, op, problem, op.fill(problem, np.random.default_rng(seed))).run()
        if observation is not None:
            scalars = op.scalars(problem)
            values = kernel.instantiate(placed.config, scalars)
            counters = observation.counters
            judgements = expectation.judgements(counters, values, scalars) if expectation.hidden else ()
            yield Judgement(problem, expectation.verdict(counters, values, scalars), tuple(judgements))
