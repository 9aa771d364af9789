"""One resident block: its warps, shared and local memory and barriers. It runs for a limited number of turns a call."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from functools import cache, reduce
from operator import or_

import numpy as np

from gemmlab.emulator.cluster_races import FAR, ROWS, VISIT
from gemmlab.emulator.geometry import Bytes, Geometry
from gemmlab.emulator.launch_layout import RANK_BITS, Pending
from gemmlab.emulator.layout import FULL, LANES, ROW, Block, Status, Wait, Warp
from gemmlab.emulator.loop import GROUP_ARGUMENT, GROUP_LANES, GROUP_PC, GROUP_WAIT, ROUNDS, TURN
from gemmlab.emulator.races import ELEMENT
from gemmlab.emulator.services import service_addresses
from gemmlab.emulator.wgmma_layout import Flight


@cache
def _runner() -> Callable[[int, int, int], int]:
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    return prototype(service_addresses()["run_block"])


class Resident:
    """One block's state: a `Block`, its warps, shared memory and local memory."""

    def __init__(
        self, geometry: Geometry, launch_address: int, rank: int = 0, place: tuple[Bytes, Bytes] | None = None
    ) -> None:
        """Allocate the memory of a block.

        `rank` is its rank in a cluster. `place` is memory for its `Block` and its warps, if these are to be adjacent to
        those of the cluster's other blocks.
        """
        x, y, z = geometry.threads
        self.threads = x * y * z
        self.count = -(-self.threads // LANES)
        self.size = Warp.size(geometry.registers)
        self.geometry = geometry
        self.block, self.warps = place or (np.zeros(Block.SIZE, np.uint8), np.zeros((self.count, self.size), np.uint8))
        self.shared = np.zeros(geometry.shared_low + geometry.shared_bytes + 64, np.uint8)
        self.valid = np.zeros_like(self.shared)
        local = self.count * LANES * geometry.local_bytes
        self.local, self.local_valid = np.zeros(local, np.uint8), np.zeros(local, np.uint8)
        self.pending = np.zeros((self.count if geometry.async_copies else 0, Pending.SIZE), np.uint8)
        self.flights = np.zeros((self.count if geometry.warpgroups else 0, Flight.SIZE), np.uint8)
        self.clocks = np.zeros((LANES, LANES), np.int32)
        self.shadow = self._shadow() if geometry.check_races else np.zeros(0, np.uint8)
        blocks = math.prod(geometry.cluster)
        self.foreign = np.zeros((ROWS, blocks, LANES), np.int32)
        self.visits = np.zeros((blocks, LANES, VISIT // 4), np.int32)
        # In a cluster, a shadow also records the accesses of the other blocks.
        apart = blocks > 1 and geometry.check_races
        self.far = np.zeros((self.shadow.size // ELEMENT if apart else 0, blocks, FAR // 4), np.int32)
        self._template = self._warp_template(launch_address)
        first = rank << RANK_BITS
        # Set once here, not in `begin`: one object is thousands of blocks in succession, and each start must be quick.
        for offset, value in (
            (Block.LAUNCH, launch_address),
            (Block.WARPS, self.warps.ctypes.data),
            (Block.WARP_COUNT, self.count),
            (Block.WARP_SIZE, self.size),
            (Block.RANK, rank),
            (Block.CLUSTER, math.prod(geometry.cluster)),
            (Block.SHARED, self.shared.ctypes.data - first),
            (Block.VALID, self.valid.ctypes.data - first),
            (Block.SHARED_LOW, first + geometry.shared_low),
            (Block.SHARED_HIGH, first + geometry.shared_low + geometry.shared_bytes),
            (Block.THREADS, self.threads),
            (Block.RACES, self.shadow.ctypes.data if self.shadow.size else 0),
            (Block.RACE_SHIFT, 0 if geometry.byte_races else 2),
            (Block.CLOCKS, self.clocks.ctypes.data),
            (Block.FOREIGN, self.foreign.ctypes.data if apart else 0),
            (Block.FAR, self.far.ctypes.data),
            (Block.VISITS, self.visits.ctypes.data),
        ):
            self.put(offset, value)

    def _shadow(self) -> Bytes:
        elements = self.geometry.shared_bytes if self.geometry.byte_races else -(-self.geometry.shared_bytes // 4)
        return np.zeros((elements + 4) * ELEMENT, np.uint8)

    def put(self, offset: int, value: int) -> None:
        """Write an i64 field of the `Block`."""
        self.block[offset : offset + 8].view(np.int64)[0] = value

    def _warp_template(self, launch_address: int) -> Bytes:
        head = np.zeros((self.count, Warp.REGISTERS), np.uint8)
        x, y, _z = self.geometry.threads
        numbers = np.arange(self.count * LANES, dtype=np.int32).reshape(self.count, LANES)
        alive = numbers < self.threads
        masks = (alive << np.arange(LANES, dtype=np.uint64)).sum(1).astype(np.uint32)
        words = head.view(np.uint32)
        wide = head.view(np.int64)
        words[:, Warp.ACTIVE // 4] = masks
        words[:, Warp.EXITED // 4] = ~masks
        wide[:, Warp.BLOCK // 8] = self.block.ctypes.data
        wide[:, Warp.LAUNCH // 8] = launch_address
        wide[:, Warp.INDEX // 8] = np.arange(self.count)
        wide[:, Warp.MAXIMUM // 8] = self.geometry.maximum_registers
        wide[:, Warp.LOCAL_BYTES // 8] = self.geometry.local_bytes
        stride = LANES * self.geometry.local_bytes
        wide[:, Warp.LOCAL // 8] = self.local.ctypes.data + np.arange(self.count) * stride
        wide[:, Warp.LOCAL_VALID // 8] = self.local_valid.ctypes.data + np.arange(self.count) * stride
        if self.pending.size:
            wide[:, Warp.PENDING // 8] = self.pending.ctypes.data + np.arange(self.count) * Pending.SIZE
        if self.flights.size:
            wide[:, Warp.FLIGHT // 8] = self.flights.ctypes.data + np.arange(self.count) * Flight.SIZE
        for base in (Warp.PREDICATES, Warp.UNIFORM_PREDICATES):
            words[:, base // 4 + 7] = FULL
        for part, values in enumerate((numbers % x, numbers // x % y, numbers // (x * y))):
            start = (Warp.TID + part * ROW) // 4
            words[:, start : start + LANES] = values.astype(np.uint32)
        words[:, Warp.LANE // 4 : Warp.LANE // 4 + LANES] = np.arange(LANES, dtype=np.uint32)
        return head

    def begin(self, linear: int) -> None:
        """Reset the state to the start of block number `linear`.

        Shared and local memory count as unwritten; they and the vector registers keep the bytes of the block before,
        except that `Geometry.filling`, if set, fills the memory.
        """
        syncs = self.warps[:, Warp.SYNCS : Warp.SYNCS + 8].copy()
        self.warps[:, : Warp.REGISTERS] = self._template
        self.warps[:, Warp.SYNCS : Warp.SYNCS + 8].view(np.int64)[:] = syncs.view(np.int64) + 1
        self.valid[:] = 0
        self.local_valid[:] = 0
        if self.geometry.filling is not None:
            self.shared[:] = self.geometry.filling
            self.local[:] = self.geometry.filling
        self.pending[:, : Pending.ENTRY] = 0
        self.flights[:, : Flight.ENTRY] = 0
        if self.geometry.landing_seed is not None and self.flights.size:
            seed = [self.geometry.landing_seed, linear]
            random = np.random.default_rng(seed).integers(1, 1 << 62, self.count)
            self.flights[:, Flight.RANDOM : Flight.RANDOM + 8].view(np.int64)[:, 0] = random
        self.block[Block.BARRIER :] = 0
        # Clocks only grow, so accesses of earlier blocks in the shadow are ordered before all of this block.
        base = int(self.clocks.max())
        self.clocks[:] = base
        np.fill_diagonal(self.clocks, base + 1)
        gx, gy, _gz = self.geometry.grid
        position = np.array([linear % gx, linear // gx % gy, linear // (gx * gy)], np.int32)
        self.block[Block.CTAID : Block.CTAID + 12].view(np.int32)[:] = position
        self.put(Block.LINEAR, linear)
        self.put(Block.WAVE, linear // self.geometry.wave_blocks % 255 + 1)
        self.put(Block.LIVE, self.threads)
        self.put(Block.FENCED, 0)
        self.put(Block.POOL, 0)
        self.put(Block.SEEN, 0)

    @property
    def start(self) -> int:
        """The clock at which this block starts: no block that this object held before has a higher one. Read it before
        any warp runs.
        """
        return int(self.clocks.min())

    def meet(self, starts: list[int]) -> None:
        """Order all accesses from before the cluster began before those of this block.

        `starts` has the `start` of each block of the cluster, by rank.
        """
        self.foreign[:] = np.array(starts, np.int32)[:, None]

    @property
    def linear(self) -> int:
        return int(self.block[Block.LINEAR : Block.LINEAR + 8].view(np.int64)[0])

    @property
    def epoch(self) -> int:
        return int(self.block[Block.EPOCH : Block.EPOCH + 8].view(np.int64)[0])

    @property
    def states(self) -> list[int]:
        """The `Status` of each warp."""
        found: list[int] = self.warps[:, Warp.STATE : Warp.STATE + 4].copy().view(np.int32)[:, 0].tolist()
        return found

    def pc(self, warp: int) -> int:
        """Index of the next instruction of a warp's running group."""
        return int(self.warps[warp, Warp.PC : Warp.PC + 8].view(np.int64)[0])

    @property
    def executed(self) -> int:
        """Number of instructions, plus readings of the clock, that all warps have executed since the block began."""
        return int(self.warps[:, Warp.CLOCK : Warp.CLOCK + 8].copy().view(np.int64).sum())

    def run(self, turn: int = TURN, most: int = ROUNDS) -> int:
        """Give each warp up to `most` turns of at most `turn` instructions; return the block's `Status`."""
        status: int = _runner()(self.block.ctypes.data, turn, most)
        return status

    def places(self) -> tuple[tuple[int, int, int], ...]:
        """Return (block, warp, instruction) of each warp that has not ended: the instruction's index in the code.

        The running group executes it next; if all groups wait, it is the one at which the first group waits.
        """
        found = []
        for index in range(self.count):
            warp = self.warps[index]
            if warp[Warp.STATE : Warp.STATE + 4].view(np.int32)[0] != Status.DONE:
                groups = int(warp[Warp.GROUPS : Warp.GROUPS + 8].view(np.int64)[0])
                running = int(warp[Warp.ACTIVE : Warp.ACTIVE + 4].view(np.uint32)[0])
                waits = groups and not running
                start = Warp.GROUP if waits else Warp.PC
                wait = int(warp[Warp.GROUP + GROUP_WAIT : Warp.GROUP + GROUP_WAIT + 4].view(np.int32)[0])
                # A waiting group's position is the instruction after its wait; for mbarriers it is the wait itself.
                ahead = bool(waits) and wait != Wait.MBARRIER
                place = int(warp[start : start + 8].view(np.int64)[0]) - ahead
                found.append((self.linear, index, place))
        return tuple(found)

    def unmet(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (block, thread, instruction, lanes) for each group of lanes that waits at a warp-level synchronisation
        (WARPSYNC) for lanes that neither wait at one nor have ended.

        `thread` is the group's first thread, `lanes` the mask of the lanes that it waits for.
        """
        for index in range(self.count):
            warp = self.warps[index]
            count = int(warp[Warp.GROUPS : Warp.GROUPS + 8].view(np.int64)[0])
            exited = int(warp[Warp.EXITED : Warp.EXITED + 4].view(np.uint32)[0])
            groups = warp[Warp.GROUP : Warp.GROUP + count * Warp.GROUP_SIZE].reshape(count, Warp.GROUP_SIZE)
            waiting = [row for row in groups if row[GROUP_WAIT : GROUP_WAIT + 4].view(np.int32)[0] == Wait.WARPSYNC]
            lanes = [int(row[GROUP_LANES : GROUP_LANES + 4].view(np.uint32)[0]) for row in waiting]
            arrived = reduce(or_, lanes, 0)
            for row, own in zip(waiting, lanes, strict=True):
                mask = int(row[GROUP_ARGUMENT : GROUP_ARGUMENT + 4].view(np.uint32)[0])
                if missing := mask & ~arrived & ~exited:
                    first = (own & -own).bit_length() - 1
                    # A waiting group's position is the instruction after its wait.
                    site = int(row[GROUP_PC : GROUP_PC + 8].view(np.int64)[0]) - 1
                    yield self.linear, index * LANES + first, site, missing

    @property
    def blocks(self) -> list[Resident]:
        """The blocks that run together: this one."""
        return [self]

    def excuse(self) -> bool:
        """Return false: without asynchronous operations, no wait has a time limit (`Cluster.excuse`)."""
        return False

    def barriers(self) -> bytes:
        """Return, as bytes to compare, the threads arrived and required at each of the block's 16 barriers."""
        rows = self.block[Block.BARRIER :].reshape(16, Block.BARRIER_SIZE)
        found: bytes = rows[:, : Block.BARRIER_TRUE].tobytes()
        return found

    def next_places(self) -> list[list[int]]:
        """Return the index of the next instruction of each group of lanes, by warp; the running group comes first.

        If no group of a warp runs, the first index of the warp is that of the group that ran last.
        """
        count = self.warps[:, Warp.GROUPS : Warp.GROUPS + 8].copy().view(np.int64)[:, 0].tolist()
        wide = self.warps[:, : Warp.PREDICATES].copy().view(np.int64)
        first, step = Warp.GROUP // 8, Warp.GROUP_SIZE // 8
        return [[row[0], *row[first : first + step * n : step]] for n, row in zip(count, wide.tolist(), strict=True)]

    def state(self) -> bytes:
        """Return the bytes of all warps, without their counts of instructions and synchronisations.

        If they repeat while `epoch` stays the same, the block is in a loop.
        """
        live = self.warps.copy()
        live[:, Warp.CLOCK : Warp.CLOCK + 8] = 0
        live[:, Warp.SYNCS : Warp.SYNCS + 8] = 0
        return live.tobytes()
