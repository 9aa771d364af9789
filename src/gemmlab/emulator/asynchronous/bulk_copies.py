"""Bulk copies and reductions of contiguous bytes, and asynchronous stores of registers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemmlab.emulator.async_calls import Direction
from gemmlab.emulator.asynchronous.async_request import Request
from gemmlab.emulator.asynchronous.block_state import BlockState
from gemmlab.emulator.asynchronous.bulk_groups import Store, groups_of
from gemmlab.emulator.asynchronous.combining import combined
from gemmlab.emulator.asynchronous.copies import Source, send
from gemmlab.emulator.asynchronous.finding import BOUNDS, MISALIGNED
from gemmlab.emulator.asynchronous.global_memory import find as find_global
from gemmlab.emulator.asynchronous.global_memory import read
from gemmlab.emulator.asynchronous.host_words import lanes_of
from gemmlab.emulator.asynchronous.mbarrier_calls import find
from gemmlab.emulator.asynchronous.proxies import begin_read
from gemmlab.emulator.launch_layout import RANK_BITS
from gemmlab.emulator.layout import Status
from gemmlab.emulator.memory_map import Reach

Bytes = npt.NDArray[np.uint8]
UNIT = 16
"""Alignment in bytes that a bulk copy needs for its source address and for its destination address."""
OFFSET = (1 << RANK_BITS) - 1


def shared_place(request: Request, address: int, nbytes: int, verb: str) -> tuple[BlockState, slice]:
    """Return the block to which shared bytes belong, and their indices in its shared memory.

    The launch ends if some are out of bounds, or if the block has ended.
    """
    block = request.target(address, f"a bulk {verb} of shared memory")
    if not block.holds(address, nbytes):
        geometry = block.resident.geometry
        at = block.offset(address) - geometry.shared_low
        request.fail(BOUNDS, f"a bulk {verb} of {nbytes} bytes at byte {at} of {geometry.shared_bytes}", address)
    start = block.offset(address)
    return block, slice(start, start + nbytes)


def destinations(address: int, mbarrier: int, blocks: int) -> list[tuple[int, int]]:
    """Return (shared address, mbarrier) of each copy: one, or one for each block in a multicast's mask `blocks`."""
    if not blocks:
        return [(address, mbarrier)]
    return [(rank << RANK_BITS | address & OFFSET, rank << RANK_BITS | mbarrier & OFFSET) for rank in lanes_of(blocks)]


def bulk(request: Request, reach: Reach) -> int:
    """Execute `Operation.BULK`: start a copy or reduction of contiguous bytes. A prefetch only checks its source."""
    direction, to, source, mbarrier, nbytes, blocks, reduction = (request.operand(row) for row in range(7))
    for what, address in (("destination", to), ("source", source)):
        if address % UNIT and not (what == "destination" and direction == Direction.PREFETCH):
            request.fail(MISALIGNED, f"the {what} of a bulk copy is no multiple of {UNIT}", address)
    if direction == Direction.PREFETCH:
        find_global(request, reach, source, nbytes, "prefetch")
    elif direction == Direction.GLOBAL_TO_SHARED:
        data = read(request, reach, source, nbytes)
        for address, barrier in destinations(to & 0xFFFFFFFF, mbarrier & 0xFFFFFFFF, blocks):
            block, index = shared_place(request, address, nbytes, "write")
            send(request, block, find(request, barrier), index, data, (address, nbytes), blocks=blocks)
    elif direction == Direction.SHARED_TO_SHARED:
        _within_cluster(request, to & 0xFFFFFFFF, source & 0xFFFFFFFF, mbarrier & 0xFFFFFFFF, nbytes, reduction)
    else:
        _store(request, reach, to, source & 0xFFFFFFFF, nbytes, reduction)
    return Status.GO


def _within_cluster(request: Request, to: int, source: int, mbarrier: int, nbytes: int, reduction: int) -> None:
    here, index = shared_place(request, source, nbytes, "read")
    reading = begin_read(request, here, source, nbytes)
    block, places = shared_place(request, to, nbytes, "write")
    _require_cluster(request, "cp.async.bulk between shared memories", to)
    send(
        request, block, find(request, mbarrier), places, here.resident.shared[index].copy(), (to, nbytes),
        reduction=reduction, source=Source(here, index, source, reading),
    )  # fmt: skip


def _require_cluster(request: Request, what: str, address: int) -> None:
    """End the launch if it has no cluster: on an H200, `what` is an illegal instruction then, even within a block."""
    if not request.block.resident.geometry.in_clusters:
        there = "in a launch without a cluster (__cluster_dims__ or cluster=), where one of a single block will do"
        request.fail("cluster", f"{what} {there}", address)


def _store(request: Request, reach: Reach, to: int, source: int, nbytes: int, reduction: int) -> None:
    block, index = shared_place(request, source, nbytes, "read")
    allocation, offset = find_global(request, reach, to, nbytes, "write")

    def write(data: Bytes) -> None:
        there = allocation.data[offset : offset + nbytes]
        there[:] = combined(reduction, there, data) if reduction else data
        allocation.valid[offset : offset + nbytes] = 0xFF

    reading = begin_read(request, block, source, nbytes)
    groups_of(block, request.warp).open.append(Store(request, source, index, write, reading, request.site))


def store(request: Request) -> int:
    """Execute `Operation.STORE`: store or reduce each lane's registers into shared memory of the cluster."""
    for lane in request.lanes:
        address, barrier = (request.operand(row, lane) & 0xFFFFFFFF for row in (0, 1))
        nbytes, reduction = request.operand(2), request.operand(3)
        if address % nbytes:
            request.fail(MISALIGNED, f"an asynchronous store of {nbytes} bytes at no multiple of {nbytes}", address)
        block, index = shared_place(request, address, nbytes, "write")
        _require_cluster(request, "red.async" if reduction else "st.async", address)
        words = np.array([request.operand(4 + part, lane) for part in range(nbytes // 4)], np.uint64)
        data = words.astype(np.uint32).view(np.uint8)
        send(
            request,
            block,
            find(request, barrier, lane),
            index,
            data,
            (address, nbytes),
            reduction=reduction,
            proxy=False,
        )
    return Status.GO
