"""Runs of kernels of parts on the emulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from gemmlab.core.counters import Counters
from gemmlab.core.precision import PARTS
from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import ladder
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from support.parts_data import Array

OP = GemmOp()
KERNELS = [kernel for kernel in ladder("gemm", "cuda") if kernel.precision in PARTS and kernel.arch == "sm_90a"]


@cache
def device() -> Device:
    return open_device("emulated:sm_90a")


@dataclass(frozen=True)
class Outcome:
    """C after a product, and what was counted."""

    c: Array
    counters: Counters

    @property
    def halves(self) -> int:
        """Products of tensor cores with halves."""
        return self.counters.executed("HGMMA") - self.bfloats

    @property
    def bfloats(self) -> int:
        """Products of tensor cores with bfloat16."""
        return self.counters.executed("HGMMA.BF16")


def product(
    kernel: Kernel, a: Array, b: Array, *, alpha: float = 1.0, beta: float = 0.0, c: Array | None = None,
    layout: str = "nn", config: Mapping[str, int] | None = None, on: Device | None = None,
) -> Outcome:  # fmt: skip
    """alpha * A B + beta * C by a kernel, its operands stored as `layout` says; C is NaN unless given. The device is
    that of the rungs for Hopper unless `on` names another.

    Asserts that there was no hazard and that all tickets are zero again.
    """
    (m, k), n = a.shape, b.shape[1]
    problem = GemmProblem(m, n, k, alpha, beta).with_layout(layout)
    stored = {
        "a": a.T if layout[0] == "t" else a,
        "b": b.T if layout[1] == "t" else b,
        "c": np.full((m, n), np.nan, np.float32) if c is None else c,
    }
    target = on or device()
    buffers = {name: target.upload(np.ascontiguousarray(x).ravel()) for name, x in stored.items()}
    bound = place(kernel, target, config).bind(OP, problem, buffers)
    seen = bound.observe()
    assert seen.hazards == ()
    assert bound.nonzero_tickets() == 0
    out = np.empty((m, n), np.float32)
    bound.download("c", out)
    for name, x in stored.items():
        if name != "c":
            after = np.empty(x.shape, np.float32)
            bound.download(name, after)
            np.testing.assert_array_equal(after.view(np.uint32), np.ascontiguousarray(x).view(np.uint32))
    for buffer in (*buffers.values(), bound.workspace, bound.tickets):
        if buffer is not None:
            target.free(buffer)
    return Outcome(out, seen.counters)
