"""Occupancy: the blocks and warps resident on an SM, with the arithmetic of each limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gemmlab.core.gpu import WARP, GpuLimits, Occupancy, occupancy
from gemmlab.core.words import counted

NAMES = {
    "warps": "warps",
    "blocks": "blocks an SM",
    "registers": "registers",
    "smem": "shared memory",
    "barriers": "named barriers",
}


@dataclass(frozen=True, slots=True)
class OccupancyReport:
    """The occupancy of a kernel and the limits that set it."""

    found: Occupancy
    steps: tuple[str, ...]
    """One line for each limit: the number of blocks that it allows, and how this number is computed."""
    binding: tuple[str, ...]
    """Names of the limits that allow no further block."""
    next_registers: int | None
    """Most registers per thread with which one more block would fit; `None` if fewer registers alone do not help."""
    next_smem: int | None
    """Most bytes of shared memory per block with which one more block would fit; `None` if less alone does not help."""


def explain_occupancy(
    limits: GpuLimits, registers: int, smem_bytes: int, threads: int, barriers: int = 0
) -> OccupancyReport:  # fmt: skip
    """Return the occupancy report of a kernel.

    `registers` are per thread, `smem_bytes` are static and dynamic shared memory per block, `threads` and
    named `barriers` are per block.
    """
    found = occupancy(limits, registers, smem_bytes, threads, barriers)
    return OccupancyReport(
        found,
        tuple(_steps(limits, found, registers, smem_bytes, threads, barriers)),
        tuple(NAMES[name] for name in found.binding),
        _largest(limits, found.blocks, registers, smem_bytes, threads, barriers, of_smem=False),
        _largest(limits, found.blocks, registers, smem_bytes, threads, barriers, of_smem=True),
    )


def _steps(
    limits: GpuLimits, found: Occupancy, registers: int, smem_bytes: int, threads: int, barriers: int
) -> Iterator[str]:  # fmt: skip
    allowed = found.allowed
    yield (
        f"warps: {threads} threads a block / {WARP} = {found.warps_per_block} warps a block; "
        f"{limits.warps_per_sm} warps an SM / {found.warps_per_block} = {counted(allowed['warps'], 'block')}"
    )
    yield f"blocks: an SM holds {limits.blocks_per_sm} at most"
    share = limits.registers_per_sm // limits.partitions
    in_part = share // found.registers_per_warp
    yield (
        f"registers: {registers} a thread x {WARP} threads = {registers * WARP:,}, in units of {limits.register_unit} "
        f"rounded up to {found.registers_per_warp:,} registers a warp; {share:,} registers a partition / "
        f"{found.registers_per_warp:,} = "
        f"{counted(in_part, 'warp')}; {limits.partitions} partitions x {in_part} = "
        f"{limits.partitions * in_part} warps / {found.warps_per_block} warps a block = "
        f"{counted(allowed['registers'], 'block')}"
    )
    if "smem" in allowed:
        reserved = f" + {limits.smem_reserved:,} B reserved" if limits.smem_reserved else ""
        yield (
            f"shared memory: {smem_bytes:,} B a block{reserved}, in units of {limits.smem_unit} B "
            f"rounded up to {found.smem_per_block:,} B; {limits.smem_per_sm:,} B an SM / {found.smem_per_block:,} B = "
            f"{counted(allowed['smem'], 'block')}"
        )
    if "barriers" in allowed:
        yield (
            f"named barriers: {limits.barriers_per_sm} an SM / {barriers} a block = "
            f"{counted(allowed['barriers'], 'block')}"
        )


def _largest(
    limits: GpuLimits, blocks: int, registers: int, smem_bytes: int, threads: int, barriers: int, *, of_smem: bool
) -> int | None:
    """Return the largest amount of one resource with which more than `blocks` blocks would fit; `None` if there is
    none.

    The resource is shared memory in bytes per block with `of_smem`, else registers per thread. Bisection is valid
    because more of a resource never lets more blocks fit.
    """

    def more(amount: int) -> bool:
        changed = (registers, amount) if of_smem else (amount, smem_bytes)
        return occupancy(limits, *changed, threads, barriers).blocks > blocks

    low, high = (0, smem_bytes) if of_smem else (1, registers)
    if not more(low):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if more(middle) else (low, middle)
    return low
