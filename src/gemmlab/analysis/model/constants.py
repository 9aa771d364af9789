"""Constants of the performance model, mostly latencies, each with its origin. No counter gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constants:
    """Constants of the model; latencies are in cycles of an SM's clock. "Fitted" ones fit the recorded times of an H200
    (docs/model.md), "assumed" ones have no source.
    """

    shared: float = 29.0
    """Latency of shared memory in cycles, from the end of service to the result. Measured on an H100 (Luo et al., arXiv
    2402.13499)."""
    l1: float = 41.0
    """Latency in cycles of a sector that hits L1. Measured on an H100 (Luo et al.)."""
    l2: float = 263.0
    """Latency in cycles of a sector that hits L2. Measured on an H100 (Luo et al.)."""
    memory: float = 900.0
    """Latency in cycles of a sector from device memory. Fitted. Luo et al. measure 479 with one thread; the recorded
    times have cold caches and many requests in flight."""
    texture: float = 90.0
    """Cycles by which the latency of a texture fetch exceeds that of a load. Assumed."""
    special: float = 24.0
    """Latency in cycles of opcodes of variable latency that access no memory, such as MUFU, S2R. Assumed."""
    operands: float = 12.0
    """Cycles from the end of a memory instruction's service in L1 until its registers have been read. Assumed."""
    barrier: float = 20.0
    """Cycles from the last warp's arrival at a barrier to the next instruction. Assumed."""
    queue: float = 64.0
    """Cycles of work that may wait in the queue of L1, or of the texture units, before further requests must wait at
    issue. Assumed."""
    window: float = 3.0
    """Cycles within which an instruction's source registers must be read, one per bank and cycle. From Huerta et al.,
    arXiv 2503.20481, on an A6000. With it, simulated bank conflicts cost about as many cycles as the dispatch stalls
    that Nsight Compute measures.
    """
    returned: float = 0.25
    """Issue slots of a partition that a load takes for each register that it writes. From loops written by hand on the
    H200 (docs/performance-notes.md): a load of four registers takes 0.8 to 1.5 slots beyond its own."""
    fetch: float = 16.0
    """Cycles to fetch 128 bytes of code that a partition's cache lacks. From the cycles per instruction of `warp_tile`
    on the H200, unrolled whole, with one warp a partition, where no other limit applies."""
    code_lines: int = 256
    """Lines of 128 bytes in a partition's instruction cache. The value lies between a loop that shows no instruction
    cache misses on the H200 (18 KB) and one that does (37 KB)."""
    l2_share: float = 0.7
    """Fraction of L2's peak bandwidth that kernels reach. Assumed."""
    memory_share: float = 0.9
    """Fraction of device memory's peak bandwidth that kernels reach: `reduce_peak` reads 4.30 of 4.8 TB/s."""
    launch_us: float = 4.5
    """Microseconds between two events around an empty kernel. Fitted."""
    next_us: float = 1.5
    """Microseconds that a launch right after another one costs, beyond its own run time. From the time that a second
    launch adds to sums of 2^10 to 2^16 elements."""


FITTED_H200 = Constants()
FITTED: Mapping[str, tuple[float, ...]] = {
    "memory": (500.0, 600.0, 700.0, 800.0, 900.0, 1000.0, 1100.0),
    "launch_us": (2.0, 2.5, 3.0, 3.5, 4.0, 4.5),
}
"""Fitted constant -> the values from which the fit chooses."""
