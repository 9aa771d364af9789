"""The parameters of a launch for the machine: grid, blocks, constants, and resources of the kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Geometry:
    """A launch's grid, blocks and constants, and the kernel's resource needs."""

    grid: tuple[int, int, int]
    threads: tuple[int, int, int]
    shared_low: int
    """First valid shared address; the bytes below it belong to the system."""
    shared_bytes: int
    registers: int
    local_bytes: int
    constants: dict[int, Bytes] = field(repr=False)
    """Constant banks by number; bank 0 holds the arguments."""
    check_races: bool = False
    byte_races: bool = False
    """True if the kernel accesses shared memory by less than 4 bytes."""
    global_races: bool = False
    """True if races in global memory are checked as well."""
    global_shift: int = 2
    """Log2 of the narrowest access to global memory in bytes; 2 if none is narrower than a word."""
    wave_blocks: int = 1
    """Number of blocks resident together on a GPU (a wave). A sector counts once for all accesses of one wave."""
    async_copies: bool = False
    """True if warps need room for asynchronous copies in flight."""
    maximum_registers: int = 0
    """Registers of each thread at the start, as setmaxnreg counts them."""
    old_tensor_core: bool = False
    """True before sm_90."""
    landing_seed: int | None = None
    """Seed of the random moments at which warpgroup multiplications execute; `None`: the latest possible moments."""
    warpgroups: bool = False
    """True if warps need room for warpgroup multiplications in flight."""
    parameters: int = 0
    """Bytes of constant bank 0, up to the last parameter, that are copied to global memory; 0 if the kernel does not
    take addresses of its parameters."""
    param_base: int = 0
    """Offset of the first parameter in the bank."""
    asynchronous: bool = False
    """True if the kernel uses mbarriers, bulk copies or cluster barriers."""
    constant_bytes: int = 0
    """Bytes that `__constant__` variables take."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    """Blocks of a cluster; the grid must consist of whole clusters."""
    filling: int | None = None
    """Value of each byte of memory that nothing has written yet; `None`: not set."""

    def place_in_cluster(self, rank: int) -> str:
        """Return words for a block by its rank, such as `"block 1 of a cluster of 2"`, also if there is no cluster."""
        count = math.prod(self.cluster)
        if count == 1:
            return f"block {rank} of a cluster, but the launch has none (__cluster_dims__ or cluster=)"
        return f"block {rank} of a cluster of {count}"
