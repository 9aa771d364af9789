"""Measure the share of its time that a CPU kernel spends in packing functions, on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gemmlab.devices.probed_cpu import ProbedCpu
from gemmlab.kernels.kernel import Kernel
from gemmlab.observe.probe_run import bind_probed
from gemmlab.ops.op import Op, Problem
from gemmlab.probes.stopwatch import PackingClock

REPEATS = 15


@dataclass(frozen=True, slots=True)
class PackingTime:
    """Medians over several calls with warm caches, in microseconds.

    Packing by a tile while it multiplies is not in a packing function, and so not in `packing_us`.
    """

    packing_us: float
    total_us: float
    calls: int
    """Number of calls of packing functions in one call of the kernel."""

    @property
    def share(self) -> float:
        """Fraction of the time that is spent in packing functions."""
        return self.packing_us / self.total_us


def time_packing(
    kernel: Kernel, op: Op, problem: Problem, config: Mapping[str, int] | None = None, repeats: int = REPEATS
) -> PackingTime | None:
    """Time `repeats` calls of `kernel` on one thread, with clock reads before and after every call of a packing
    function.

    Return `None` if it calls none. Raises the errors of `cache_misses.simulate`.
    """
    device = ProbedCpu(PackingClock())
    bound = bind_probed(kernel, op, problem, device, config)
    bound.run()
    samples = []
    for _ in range(repeats):
        device.state[:] = 0
        (total_us,) = bound.time(1)
        samples.append((float(device.state[0]) / 1e3, total_us))
    packing_us, total_us = np.median(samples, axis=0)
    calls = int(device.state[1])
    return PackingTime(float(packing_us), float(total_us), calls) if calls else None
