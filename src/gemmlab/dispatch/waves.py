"""Estimate the time of a kernel that was not measured, by a rule with three parameters.

The blocks of a grid are distributed over a GPU's multiprocessors in turn. The multiprocessor with the most blocks,
`ceil(blocks / SMs)`, determines the time. At most `r` blocks are resident on it at a time (occupancy). If `j <= r`
blocks run together, each step along k takes

    max(alone, j * share)

`alone` is the time of a single block: its latency. `share` is the time that each block adds on a full multiprocessor:
issue slots, shared memory. So `rounds` rounds of `r` blocks and a last round of `rest` blocks take

    start + k * (rounds * max(alone, r * share) + max(alone, rest * share))

Tile efficiency and skinny shapes need no rule of their own: a tile that hangs over the edge costs as much as a full
one. The rule ignores products so flat that memory bounds them: memory bounds all kernels alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from gemmlab.core import gpu
from gemmlab.core.errors import UsageError
from gemmlab.dispatch.measurements import Measurement


@dataclass(frozen=True, slots=True)
class Gpu:
    """The properties of a GPU that a choice depends on."""

    name: str
    limits: gpu.GpuLimits
    sms: int
    mhz: float
    known: str = ""
    """The model's name in `core.gpu.model`; empty for a model that is not known there."""

    @property
    def arch(self) -> int:
        """The architecture as a number, 90 for sm_90."""
        return _number(self.limits.arch)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated time of one kernel on one problem, and the figures that it follows from."""

    us: float
    blocks: int
    resident: int
    """Number of blocks resident on a multiprocessor at a time; 0 if not even one fits, and the time is infinite."""
    rounds: int
    """Number of turns that the fullest multiprocessor needs for its blocks."""
    tile_use: float
    """Ratio of the elements of the result to those that its tiles cover."""


def gpu_model(name: str) -> Gpu:
    """Return a GPU model by its name, as `core.gpu.model` knows it. Raises `UsageError`."""
    found = gpu.model(name)
    return Gpu(found.name, found.limits, found.sms, found.boost_mhz, found.name)


def gpu_of_facts(name: str, capability: str, sms: int, mhz: float) -> Gpu:
    """Return a GPU as its driver describes it; an unknown architecture gets the limits of the one before."""
    wanted = int(capability.replace(".", ""))
    limits = next(filter(None, map(_limits, (a for a in reversed(gpu.ARCHITECTURES) if _number(a) <= wanted))), None)
    if limits is None:
        raise UsageError(f"gemm: nothing is known of {name}, compute capability {capability}")
    try:
        called = gpu.model(name).name
    except UsageError:
        called = ""
    return Gpu(name, limits, sms, mhz, called)


def estimate(
    entry: Measurement, m: int, n: int, k: int, where: Gpu, measured_on: Gpu, products: int = 1
) -> Estimate:  # fmt: skip
    """Estimate the time of products of one shape in one launch. On a GPU other than `measured_on`, block times scale
    with clock and FMA lanes.
    """
    down, across = -(-m // entry.config["BM"]), -(-n // entry.config["BN"])
    blocks = products * down * across
    covered = blocks * entry.config["BM"] * entry.config["BN"]
    resident = _resident(where.limits, entry.registers, entry.smem, entry.threads)
    if not resident or not blocks:
        return Estimate(float("inf") if blocks else 0.0, blocks, resident, 0, 0.0)
    clock = measured_on.mhz / where.mhz
    alone = entry.alone_us * clock
    share = entry.share_us * clock * measured_on.limits.fma_lanes / where.limits.fma_lanes
    rounds, rest = divmod(-(-blocks // where.sms), resident)
    step = rounds * max(alone, resident * share) + (max(alone, rest * share) if rest else 0.0)
    return Estimate(entry.start_us + k * step, blocks, resident, rounds + bool(rest), products * m * n / covered)


@cache
def _resident(limits: gpu.GpuLimits, registers: int, smem: int, threads: int) -> int:
    return gpu.occupancy(limits, registers, smem, threads).blocks


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_"))


def _limits(arch: str) -> gpu.GpuLimits | None:
    try:
        return gpu.limits(arch)
    except UsageError:
        return None
