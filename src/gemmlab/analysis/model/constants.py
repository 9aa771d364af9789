"""How long things take: the figures of the model that no count gives, each with its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constants:
    """Cycles are of an SM's clock. What is "fitted" is so on the recorded times of an H200; see docs/model.md."""

    shared: float = 29.0
    """Shared memory, from service to result: as microbenchmarks of an H100 find it (Luo et al., arXiv 2402.13499)."""
    l1: float = 41.0
    """A sector that L1 has: the same."""
    l2: float = 263.0
    """One that L2 has: the same."""
    memory: float = 1000.0
    """One that comes from device memory. Fitted; they read 479 with one thread, here caches were written over and
    many requests are under way."""
    texture: float = 90.0
    """What a texture fetch takes beyond a load: assumed."""
    special: float = 24.0
    """Results of opcodes of variable latency that touch no memory, such as MUFU, S2R: assumed."""
    operands: float = 12.0
    """Until a memory instruction has read its registers, after its service begins: assumed."""
    barrier: float = 20.0
    """From the last warp's arrival to the next instruction: assumed."""
    queue: float = 64.0
    """Cycles of work that L1's queue holds before further requests must wait at issue: assumed."""
    window: float = 3.0
    """In which an instruction's registers have to come from their banks, one a bank and cycle: Huerta et al., arXiv
    2503.20481, of an A6000. So counted, bank conflicts are about what Nsight Compute calls dispatch stalls here."""
    fetch: float = 16.0
    """For 128 bytes of code that a partition does not have: the H200's cycles an instruction in `warp_tile` with one
    warp a partition, where nothing else binds."""
    code_lines: int = 256
    """Of 128 bytes that a partition has: between the loop that shows no such misses there (18 KB) and that which does
    (37 KB)."""
    l2_share: float = 0.7
    """Of the level-2 cache's ceiling that is reached: assumed."""
    memory_share: float = 0.9
    """Of device memory's peak: `reduce_peak` reads 4.30 of 4.8 TB/s."""
    launch_us: float = 4.0
    """Of an empty kernel between two events. Fitted."""
    next_us: float = 1.5
    """Of a launch right behind another: what a second one adds to sums of 2^10 to 2^16 elements, less what it runs."""


FITTED_H200 = Constants()
FITTED: Mapping[str, tuple[float, ...]] = {
    "memory": (800.0, 900.0, 1000.0, 1100.0),
    "launch_us": (2.0, 2.5, 3.0, 3.5, 4.0, 4.5),
}
"""What was chosen to fit recorded times, and among which values."""
