"""The parameters of a launch for the machine: grid, blocks, constants, and resources of the kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gemmlab.emulator.launch_layout import RANK_BITS
from gemmlab.emulator.shared_variables import SharedVariable, array_at, variable_at

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
    """True if races in shared memory are checked."""
    byte_races: bool = False
    """True if the kernel accesses shared memory by less than 4 bytes: its race shadow has an element for each byte."""
    global_races: bool = False
    """True if races in global memory are checked."""
    global_shift: int = 2
    """Log2 of the narrowest access to global memory in bytes: 0, 1 or 2; 2 if none is narrower than 4 bytes."""
    wave_blocks: int = 1
    """Number of blocks resident together on a GPU (a wave). All accesses of one wave count a distinct sector once."""
    async_copies: bool = False
    """True if warps need room for cp.async copies in flight."""
    maximum_registers: int = 0
    """Registers of each thread at the start, as setmaxnreg counts them: rounded up to a multiple of 8."""
    old_tensor_core: bool = False
    """True for an architecture before sm_90 (`Launch.OLD_TENSOR_CORE`)."""
    landing_seed: int | None = None
    """Seed of the random moments at which warpgroup multiplications execute; `None`: the latest possible moments."""
    warpgroups: bool = False
    """True if warps need room for warpgroup multiplications in flight."""
    parameters: int = 0
    """Bytes of constant bank 0, up to the last parameter, that the kernel can also access as global memory; 0 if it
    does not take addresses of its parameters.
    """
    param_base: int = 0
    """Byte offset of the first parameter in constant bank 0."""
    asynchronous: bool = False
    """True if the kernel needs the engine of asynchronous operations (`Image.asynchronous`). A launch in clusters of
    several blocks has the engine in any case.
    """
    constant_bytes: int = 0
    """Bytes that `__constant__` variables take."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    """Extents of a cluster in blocks (x, y, z); the grid must consist of whole clusters."""
    cooperative: bool = False
    """True if all blocks are resident together."""
    in_clusters: bool = False
    """True if the kernel or the launch states a cluster, also one of a single block."""
    filling: int | None = None
    """Value (0 to 255) of each byte of global, shared and local memory that nothing has written yet; `None`: such bytes
    are left as they are.
    """
    variables: tuple[SharedVariable, ...] = ()
    """The kernel's `__shared__` variables; empty if it is not known where they lie."""

    def place_in_cluster(self, rank: int) -> str:
        """Return words for the block with a rank in its cluster, such as `"block 1 of a cluster of 2"`.

        If neither the kernel nor the launch states a cluster, they say so.
        """
        if not self.in_clusters:
            return f"block {rank} of a cluster, but the launch has none (__cluster_dims__ or cluster=)"
        return f"block {rank} of a cluster of {math.prod(self.cluster)}"

    def shared_array(self, address: int) -> str:
        """Return the name of the `__shared__` variable for an address (`array_at`).

        It is empty if none is known, or if the address is not a shared one.
        """
        return array_at(self.variables, self._offset(address)) if self._shared(address) else ""

    def owner(self, address: int, block: int) -> str:
        """Return words for the block of the cluster that owns a shared address, such as `"block 1 of the cluster"`.

        They are empty if the owner is `block` itself (its number in the grid), or if the address is not a shared one.
        """
        rank = address >> RANK_BITS
        return f"block {rank} of the cluster" if self._shared(address) and rank != self.rank(block) else ""

    def rank(self, block: int) -> int:
        """Return the rank in its cluster of block number `block` of the grid."""
        rank, rest = 0, block
        step = 1
        for extent, size in zip(self.grid, self.cluster, strict=True):
            rank += rest % extent % size * step
            rest, step = rest // extent, step * size
        return rank

    def shared_word(self, address: int) -> str:
        """Return the place of an mbarrier in words: `full[1]`, `full[1] of block 1 of the cluster`, `at 0x4408`."""
        offset = self._offset(address)
        variable = variable_at(self.variables, offset)
        if variable is None:
            return f"at 0x{address:x}"
        of_block = f" of block {address >> RANK_BITS} of the cluster" if math.prod(self.cluster) > 1 else ""
        return variable.word(offset) + of_block

    def _shared(self, address: int) -> bool:
        """Return whether an address is a shared one: its upper bits are the rank of a block of the cluster."""
        return 0 <= address >> RANK_BITS < math.prod(self.cluster)

    def _offset(self, address: int) -> int:
        """Return the byte offset of a shared address in its block, from the start of the kernel's own shared memory."""
        return (address & (1 << RANK_BITS) - 1) - self.shared_low
