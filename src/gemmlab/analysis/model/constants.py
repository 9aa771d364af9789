"""Constants of the performance model, mostly latencies, each with its origin. No counter gives them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constants:
    """Constants of the model; latencies are in cycles of an SM's clock. None is fitted to a kernel's time. "Assumed"
    ones have no source. "Unit costs" are measured on an H200 by makers/unit_costs.py and recorded in
    benchmarks/results/h200/unit-costs.json.
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
    fetch: float = 18.7
    """Cycles to fetch 128 bytes of code that a partition's cache lacks. Unit costs: loops of 40 to 128 KB of FFMAs take
    19.4 for each 128 bytes with one warp a partition, and 18.1 with two. (The SM does not hold 256 KB; that takes 47.)
    """
    code_lines: int = 288
    """Lines of 128 bytes in a partition's instruction cache. Unit costs: a loop of 28 KB of FFMAs has all of its code
    there, one of 32 KB most of it, one of 36 KB two thirds, one of 40 KB nothing."""
    l2_share: float = 0.91
    """Fraction of L2's peak bandwidth that kernels reach. Unit costs: 35.4 of 38.8 bytes a cycle and SM."""
    memory_share: float = 0.95
    """Fraction of device memory's peak bandwidth that kernels reach. Unit costs: of 0.5 to 4.3 GB that are read, each
    4.55 MB more take a microsecond; the peak is 4.8 TB/s."""
    launch_us: float = 3.2
    """Microseconds between two events around a kernel that looks at its arguments and ends, with cold caches. Unit
    costs: median of 200 launches; an empty kernel takes 3.1."""
    next_us: float = 1.7
    """Microseconds that a launch right after another one costs, beyond its own run time. Unit costs: four empty kernels
    take 5.0 more than one."""


OF_H200 = Constants()
"""Constants of an H200."""
