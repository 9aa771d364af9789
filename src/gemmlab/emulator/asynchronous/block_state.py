"""The engine's state of one resident block: its memory, mbarriers, copies, cluster, and its warps' vector clocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gemmlab.emulator.asynchronous.host_words import put_wide, wide
from gemmlab.emulator.cluster_races import FENCED
from gemmlab.emulator.launch_layout import RANK_BITS
from gemmlab.emulator.layout import LANES, Block, Warp
from gemmlab.emulator.races import ELEMENT

if TYPE_CHECKING:
    from gemmlab.emulator.asynchronous.bulk_groups import WarpGroups
    from gemmlab.emulator.asynchronous.copies import Copy
    from gemmlab.emulator.asynchronous.mbarrier import Mbarrier
    from gemmlab.emulator.resident import Resident


@dataclass(frozen=True, slots=True)
class PassedWait:
    """The wait that a warp has passed last, of all its waits for mbarriers."""

    site: int
    name: str
    """The mbarrier in words (`Mbarrier.name`)."""
    parity: int
    again: bool
    """True if the warp had already passed a wait for the same phase."""
    time: int
    """The block's time (`BlockState.tick`) at which the wait passed."""

    @property
    def words(self) -> str:
        """Words for the wait in the message of an access that comes too early."""
        tested = f"the wait before tested parity {self.parity} of the {self.name}"
        return f"{tested} again, and passed a phase early" if self.again else tested


FENCES = 64
"""Largest number of proxy fences stored for one warp; the oldest stored one stands for those before it, too."""
Clocks = npt.NDArray[np.int32]
"""A vector clock: a row for each block of the cluster, with a clock for each of 32 warps."""


@dataclass(slots=True)
class BlockState:
    """State of one block in addition to its `Resident`."""

    resident: Resident
    rank: int = 0
    cluster: list[BlockState] = field(default_factory=list, repr=False)
    """Blocks of the cluster, by rank."""
    mbarriers: dict[int, Mbarrier] = field(default_factory=dict)
    """Shared address -> mbarrier."""
    groups: dict[int, WarpGroups] = field(default_factory=dict)
    """Index of a warp -> its bulk groups."""
    incoming: list[Copy] = field(default_factory=list, repr=False)
    """Copies into this block that are in flight."""
    history: list[Copy] = field(default_factory=list, repr=False)
    """The last copies into this block, complete or not, for reports; `copies.HISTORY` at most."""
    fences: dict[int, list[tuple[int, npt.NDArray[np.int32]]]] = field(default_factory=dict)
    """Index of a warp -> (its clock, each lane's number of fences) at each of its last `FENCES` proxy fences.

    If there were more, the first stored one has the clock `start`.
    """
    excused: set[tuple[int, int]] = field(default_factory=set)
    """(warp, instruction) of waits that return without success, as if they had timed out."""
    waits: dict[int, PassedWait] = field(default_factory=dict)
    """Index of a warp -> the wait that it passed last."""
    time: int = 0
    """Number of copies that the block's warps have issued plus waits for mbarriers that they have passed. `begin`
    does not reset it."""
    start: int = 0
    """The block's clocks are higher than this; up to it they are clocks of earlier blocks."""
    passed: Clocks = field(default_factory=lambda: np.zeros((1, LANES), np.int32), repr=False)
    """Clocks of the cluster's warps at their arrivals, relaxed or not, at cluster barriers that this block passed."""
    initialised: Clocks = field(default_factory=lambda: np.zeros((1, LANES), np.int32), repr=False)
    """Clocks of the cluster's warps up to which this block knows, by the cluster barriers that it passed, of their
    initialisations of mbarriers.

    An arrival with release, or a relaxed one behind fence.mbarrier_init, makes known all before it; another relaxed one
    only all before the warp's last fence of cluster or wider scope.
    """
    arrived: set[int] = field(default_factory=set)
    """Warps that have arrived at the cluster's barrier and not waited since."""
    cluster_time: int = 0
    """Number of complete phases of the cluster's barrier."""
    ended: bool = False

    @property
    def address(self) -> int:
        """Host address of the block's `Block` structure."""
        return int(self.resident.block.ctypes.data)

    @property
    def linear(self) -> int:
        return self.resident.linear

    @property
    def checks(self) -> bool:
        """True if races in shared memory are checked."""
        return self.resident.shadow.size > 0

    @property
    def element_shift(self) -> int:
        """Log2 of the bytes of shared memory that one element of the race shadow covers: 0 or 2."""
        return 0 if self.resident.geometry.byte_races else 2

    def begin(self, cluster: list[BlockState], rank: int) -> None:
        """Reset the state for a block that starts as number `rank` of a cluster."""
        self.cluster, self.rank, self.ended, self.cluster_time = cluster, rank, False, 0
        for part in (self.mbarriers, self.groups, self.incoming, self.history, self.excused, self.fences, self.waits):
            part.clear()
        self.arrived.clear()
        self.start = self.resident.start
        self.passed, self.initialised = self.no_clocks(), self.no_clocks()

    def its_end(self) -> tuple[tuple[str, int], ...]:
        """Return a mention, for a finding, of the instruction with which warp 0 of this ended block ended."""
        return ((f"block {self.rank} of the cluster ends", wide(self.warp(0) + Warp.PC) - 1),)

    def offset(self, address: int) -> int:
        """Return the index in `Resident.shared` and `valid` of a shared address of this block."""
        return address - (self.rank << RANK_BITS)

    def holds(self, address: int, nbytes: int) -> bool:
        """Return whether the bytes are in this block's shared memory."""
        low = self.resident.geometry.shared_low
        return (
            low <= self.offset(address) and self.offset(address) + nbytes <= low + self.resident.geometry.shared_bytes
        )

    def tick(self) -> int:
        """Advance the block's time by one and return it."""
        self.time += 1
        return self.time

    def changed(self) -> None:
        """Count a change that another thread could notice (`Block.EPOCH`)."""
        put_wide(self.address + Block.EPOCH, wide(self.address + Block.EPOCH) + 1)

    def warp(self, index: int) -> int:
        """Return the host address of a warp's structure."""
        return int(self.resident.warps.ctypes.data) + index * self.resident.size

    def fence(self, warp: int) -> None:
        """Record a proxy fence of a warp."""
        row = self.resident.warps[warp, Warp.PROXY_FENCES : Warp.PROXY_FENCES + 4 * LANES].view(np.int32)
        log = self.fences.setdefault(warp, [])
        log.append((int(self.resident.clocks[warp, warp]), row.copy()))
        if len(log) > FENCES:
            # For a clock before the stored fences the answer is then too large: a missing fence may be overlooked, but
            # no right kernel is reported.
            log[:2] = [(self.start, log[1][1])]

    def fences_known(self, warp: int, clock: int) -> npt.NDArray[np.int32]:
        """Return how many proxy fences each lane of a warp executed while the warp's clock was at most `clock`.

        The numbers may be too large if the warp executed `FENCES` fences since.
        """
        rows = [row for when, row in self.fences.get(warp, ()) if when <= clock]
        return rows[-1] if rows else np.zeros(LANES, np.int32)

    def no_clocks(self) -> Clocks:
        """Return a vector clock of zeros: no access is ordered before it."""
        return np.zeros((len(self.cluster), LANES), np.int32)

    def knows_initialisation(self, warp: int, by: int, clock: int) -> bool:
        """Return whether `warp` is ordered behind the initialisation of an mbarrier by warp `by` of this block.

        The initialisation was made when the own clock of `by` was `clock`.

        Within a warp, uses count as ordered: __syncwarp() after the initialisation is only a NOP in machine code.
        """
        if by == warp or clock <= self.resident.clocks[warp, by]:
            return True
        return warp not in self.arrived and clock <= self.initialised[self.rank, by]

    def shadow(self) -> npt.NDArray[np.int32]:
        """Return the race shadow: a row of words for each element of shared memory."""
        rows: npt.NDArray[Any] = self.resident.shadow.view(np.int32).reshape(-1, ELEMENT // 4)
        return rows

    def known(self, warp: int) -> Clocks:
        """Return a copy of a warp's vector clock."""
        rows: Clocks = self.resident.foreign[warp].copy()
        rows[self.rank] = self.resident.clocks[warp]
        return rows

    def fenced(self, warp: int) -> Clocks:
        """Return a warp's vector clock at its last fence of cluster or wider scope."""
        rows: Clocks = self.resident.foreign[FENCED + warp]
        return rows

    def release(self, warp: int, into: Clocks, *, relaxed: bool = False) -> None:
        """Merge a warp's vector clock into `into`, and advance the warp's own clock.

        `relaxed`: merge its vector clock at its last fence instead.
        """
        np.maximum(into, self.fenced(warp) if relaxed else self.known(warp), out=into)
        self.resident.clocks[warp, warp] += 1
        self._synchronise(warp)

    def acquire(self, warp: int, rows: Clocks) -> None:
        """Merge the vector clock `rows` into a warp's."""
        np.maximum(self.resident.clocks[warp], rows[self.rank], out=self.resident.clocks[warp])
        foreign = self.resident.foreign[warp]
        np.maximum(foreign, rows, out=foreign)
        self._synchronise(warp)

    def _synchronise(self, warp: int) -> None:
        where = self.warp(warp) + Warp.SYNCS
        put_wide(where, wide(where) + 1)
