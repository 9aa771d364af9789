"""Constants of the performance model, mostly latencies, each with its origin. No counter gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constants:
    """Constants of the model; latencies are in cycles of an SM's clock. "Fitted" ones fit the recorded times of an H200
    (docs/model.md), "assumed" ones have no source. "Unit costs" are measured on an H200 by makers/unit_costs.py and
    recorded in benchmarks/results/h200/unit-costs.json.
    """

    shared: float = 29.0
    """Latency of shared memory in cycles, from the end of service to the result. Measured on an H100 (Luo et al., arXiv
    2402.13499)."""
    l1: float = 41.0
    """Latency in cycles of a sector that hits L1. Measured on an H100 (Luo et al.)."""
    l2: float = 285.0
    """Mean latency in cycles of a sector that hits L2. Unit costs: 241 to 250 cycles more than one that hits L1."""
    l2_spread: float = 31.0
    """Cycles by which that latency is longer or shorter, by the sector's place. Unit costs: 258 to 308 cycles from the
    10th to the 90th of 100 loads; the same places are near for one half of the SMs and far for the other."""
    memory: float = 674.0
    """Mean latency in cycles of a sector from device memory. Unit costs: median of single loads."""
    memory_spread: float = 180.0
    """Cycles by which that latency is longer or shorter. Unit costs: 519 to 809 cycles from the 10th to the 90th of 100
    loads."""
    texture: float = 90.0
    """Cycles by which the latency of a texture fetch exceeds that of a load. Assumed."""
    special: float = 24.0
    """Latency in cycles of opcodes of variable latency that access no memory, such as MUFU, S2R. Assumed."""
    operands: float = 12.0
    """Cycles from the end of a memory instruction's service in L1 until its registers have been read. Assumed."""
    barrier: float = 8.0
    """Cycles from the last warp's arrival at a barrier to the next instruction. Unit costs: the value between 5 and 20
    that fits 70 loops with barriers best."""
    arrival: float = 2.0
    """Cycles for which a warp's arrival at a barrier occupies a unit of the SM. Unit costs: a turn of a loop of
    barriers takes 31, 39, 55 and 87 cycles with 4, 8, 16 and 32 warps."""
    start: float = 8.0
    """Cycles from the start of a warp to that of the next warp of the SM. Unit costs: blocks of 32, 16 and 8 warps
    start 260, 145 and 75 cycles apart."""
    queue: float = 64.0
    """Cycles of work that may wait in the queue of L1, or of the texture units, before further requests must wait at
    issue. Assumed."""
    window: float = 3.0
    """Cycles within which an instruction's source registers must be read, one per bank and cycle. From Huerta et al.,
    arXiv 2503.20481, on an A6000. With it, simulated bank conflicts cost about as many cycles as the dispatch stalls
    that Nsight Compute measures.
    """
    returned: float = 0.5
    """Issue slots of a partition that a load takes for each register that it writes. Unit costs: of quarters from 0.25
    to 1, the one that fits the loops of FFMAs beside loads best."""
    fetch: float = 16.0
    """Cycles to fetch 128 bytes of code that a partition's cache lacks. From the cycles per instruction of `warp_tile`
    on the H200, unrolled whole, with one warp a partition, where no other limit applies."""
    code_lines: int = 256
    """Lines of 128 bytes in a partition's instruction cache. The value lies between a loop that shows no instruction
    cache misses on the H200 (18 KB) and one that does (37 KB)."""
    l2_share: float = 0.91
    """Fraction of L2's peak bandwidth that kernels reach. Unit costs: 35.4 of 38.8 bytes a cycle and SM."""
    memory_share: float = 0.9
    """Fraction of device memory's peak bandwidth that kernels reach: `reduce_peak` reads 4.30 of 4.8 TB/s."""
    launch_us: float = 4.5
    """Microseconds between two events around an empty kernel. Fitted."""
    next_us: float = 1.5
    """Microseconds that a launch right after another one costs, beyond its own run time. From the time that a second
    launch adds to sums of 2^10 to 2^16 elements."""


FITTED_H200 = Constants()
FITTED: Mapping[str, tuple[float, ...]] = {
    "launch_us": (2.0, 2.5, 3.0, 3.5, 4.0, 4.5),
}
"""Fitted constant -> the values from which the fit chooses."""
