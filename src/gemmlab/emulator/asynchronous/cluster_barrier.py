"""The barrier of a cluster: when every thread that has not ended has arrived, all go on."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np

from gemmlab.emulator.asynchronous.absent_arrivals import WaitingWarps
from gemmlab.emulator.asynchronous.async_request import Request
from gemmlab.emulator.asynchronous.block_state import BlockState, Clocks
from gemmlab.emulator.asynchronous.finding import CLUSTER, Finding, Findings
from gemmlab.emulator.asynchronous.host_words import narrow, put_narrow, put_wide, wide
from gemmlab.emulator.asynchronous.warp_words import warps_in_words
from gemmlab.emulator.instruction_layout import Insn, Order
from gemmlab.emulator.layout import FULL, LANES, Status, Wait, Warp
from gemmlab.emulator.loop import GROUP_ARGUMENT, GROUP_WAIT, RELEASED
from gemmlab.emulator.services import service_addresses

PUSH = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_int32, ctypes.c_int64)


@dataclass(slots=True)
class ClusterBarrier:
    """The warps that have arrived at a cluster's barrier in the current phase, and the vector clocks that it passes on.

    The end of a phase does not reset the clocks.
    """

    blocks: list[BlockState]
    arrived: dict[int, int] = field(default_factory=dict)
    """Host address of a warp -> mask of its lanes that have arrived."""
    arriving: Clocks = field(default_factory=lambda: np.zeros((1, LANES), np.int32), repr=False)
    """Maximum of the vector clocks of the warps that arrived: for a relaxed arrival, that at the warp's last fence."""
    released: Clocks = field(default_factory=lambda: np.zeros((1, LANES), np.int32), repr=False)
    """`arriving` at the end of the most recent complete phase, which warps take over at their wait."""
    here: Clocks = field(default_factory=lambda: np.zeros((1, LANES), np.int32), repr=False)
    """Maximum of the vector clocks of the warps at all arrivals since the cluster began, relaxed or not."""

    initialised: Clocks = field(default_factory=lambda: np.zeros((1, LANES), np.int32), repr=False)
    """Like `arriving`, for initialisations of mbarriers: behind fence.mbarrier_init a relaxed arrival releases them."""

    def __post_init__(self) -> None:
        self.here = np.zeros((len(self.blocks), LANES), np.int32)
        self.arriving = np.zeros((len(self.blocks), LANES), np.int32)
        self.released, self.initialised = self.arriving.copy(), self.arriving.copy()

    def arrive(self, request: Request) -> int:
        """Arrive with the lanes that execute."""
        before = self.arrived.get(request.warp_address, 0)
        if before & request.execute:
            request.report(CLUSTER, "a thread arrives at the cluster's barrier again before it has waited")
        self.arrived[request.warp_address] = before | request.execute
        order = Order(narrow(request.instruction + Insn.STRONG)) if request.block.checks else Order.RELEASE
        known = request.block.known(request.warp)
        np.maximum(self.here, known, out=self.here)
        initialised = request.block.fenced(request.warp) if order == Order.RELAXED else known
        np.maximum(self.initialised, initialised, out=self.initialised)
        request.block.arrived.add(request.warp)
        request.block.release(request.warp, self.arriving, relaxed=order != Order.RELEASE)
        request.block.changed()
        self.settle()
        return Status.GO

    def wait(self, request: Request) -> int:
        """Wait for the end of the phase in which the lanes arrived; if it is over, or they have not arrived, go on."""
        request.block.arrived.discard(request.warp)
        if not self.arrived.get(request.warp_address, 0) & request.execute:
            request.block.acquire(request.warp, self.released)
            return Status.GO
        warp = request.warp_address
        mask = request.execute - (request.execute >> 31 << 32)
        PUSH(service_addresses()["push"])(warp, wide(warp + Warp.PC), mask, Wait.CLUSTER, 0)
        rest = narrow(warp + Warp.ACTIVE) & ~request.execute & FULL
        put_narrow(warp + Warp.ACTIVE, rest - (rest >> 31 << 32))
        self.settle()
        return Status.GO if rest else Status.SWITCH

    def settle(self) -> bool:
        """End the phase if every thread that has not ended has arrived; return whether it did."""
        if not self.arrived:
            return False
        for block in self.blocks:
            for index in range(block.resident.count):
                if not self._has_arrived(block, index):
                    return False
        self.arrived.clear()
        self.released = self.arriving.copy()
        for block in self.blocks:
            block.cluster_time += 1
            block.passed, block.initialised = self.here.copy(), self.initialised.copy()
            block.changed()
            for index in range(block.resident.count):
                self._wake(block, index)
        return True

    def report(self, findings: Findings, waits: WaitingWarps) -> None:
        """In a deadlock: add a finding for the first group that waits here, with the warps that have not arrived.

        `waits`: the warps that wait for mbarriers.
        """
        absent = [
            (block, [index for index in range(block.resident.count) if not self._has_arrived(block, index)])
            for block in self.blocks
        ]
        missing = " and ".join(f"{warps_in_words(warps)} of block {block.rank}" for block, warps in absent if warps)
        mentions = {
            waits[block.linear, warp][1]: f"warp {warp} of block {block.rank} waits for the "
            f"{waits[block.linear, warp][0].name}"
            for block, warps in absent for warp in reversed(warps) if (block.linear, warp) in waits
        }  # fmt: skip
        for block in self.blocks:
            for index in range(block.resident.count):
                warp = block.warp(index)
                for group in (warp + Warp.GROUP + n * Warp.GROUP_SIZE for n in range(wide(warp + Warp.GROUPS))):
                    if narrow(group + GROUP_WAIT) == Wait.CLUSTER:
                        found = Finding(
                            CLUSTER, f"the cluster's barrier lacks {missing}", block.linear, index * LANES,
                            wide(group) - 1, state=True, mentions=tuple((words, at) for at, words in mentions.items()),
                        )  # fmt: skip
                        findings.add(found)
                        return

    def _has_arrived(self, block: BlockState, index: int) -> bool:
        """Return whether each lane of a warp has arrived or ended."""
        warp = block.warp(index)
        return (self.arrived.get(warp, 0) | narrow(warp + Warp.EXITED)) & FULL == FULL

    def _wake(self, block: BlockState, index: int) -> None:
        warp = block.warp(index)
        for number in range(wide(warp + Warp.GROUPS)):
            group = warp + Warp.GROUP + number * Warp.GROUP_SIZE
            if narrow(group + GROUP_WAIT) == Wait.CLUSTER:
                put_narrow(group + GROUP_WAIT, Wait.READY)
                put_wide(group + GROUP_ARGUMENT, RELEASED)
                block.acquire(index, self.released)
