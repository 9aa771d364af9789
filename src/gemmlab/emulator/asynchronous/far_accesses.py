"""Races of asynchronous operations with accesses of the cluster's other blocks to a block's shared memory.

The accesses are recorded in the shadow of `emulator.cluster_races`.
"""

from __future__ import annotations

import numpy as np

from gemmlab.emulator.asynchronous.async_request import Request
from gemmlab.emulator.asynchronous.block_state import BlockState
from gemmlab.emulator.asynchronous.finding import CLUSTER, RACE, Finding, Findings
from gemmlab.emulator.cluster_races import (
    ATOMIC,
    PLAIN,
    READ_FAR_BY,
    READ_FAR_CLOCK,
    READ_FAR_SITE,
    VISIT,
    WRITE_BY,
    WRITE_CLOCK,
    WRITE_SITE,
    WRITE_STRONG,
)
from gemmlab.emulator.layout import LANES, Block

_WRITES = WRITE_CLOCK // 4, WRITE_BY // 4, WRITE_SITE // 4
_READS = READ_FAR_CLOCK // 4, READ_FAR_BY // 4, READ_FAR_SITE // 4


def compare(
    request: Request, block: BlockState, elements: slice, address: int, does: str, *, write: bool, adds: bool = False
) -> None:
    """Report an access to elements of `block` that nothing orders before an operation of the requesting warp.

    It compares with accesses of the cluster's other blocks and with atomic ones of `block` itself, and reports one at
    most: a write if there is one, at the first element.

    `address` is that of the first element. `does` are words for the operation. `write`: it writes, so it conflicts with
    reads as well. `adds`: it is a reduction, which does not race with atomic operations and other reductions.
    """
    rows = block.resident.far[elements]
    if not rows.size:
        return
    known = request.block.known(request.warp)
    for did, (clock, by, site) in (("wrote", _WRITES), ("may still read", _READS))[: 1 + write]:
        warps = rows[:, :, by] >> 5
        late = rows[:, :, clock] > np.take_along_axis(known, warps.T, 1).T
        if adds and by == WRITE_BY // 4:
            late &= rows[:, :, WRITE_STRONG // 4] != ATOMIC
        late[:, request.block.rank] &= warps[:, request.block.rank] != request.warp
        if late.any():
            element, rank = (int(index) for index in np.unravel_index(int(late.argmax()), late.shape))
            entry = rows[element, rank]
            message = (
                f"{does} shared memory that thread {int(entry[by])} of block {rank} of the cluster"
                f" {did}: nothing orders the two (a barrier of the cluster, an mbarrier)"
            )
            request.report(RACE, message, address + (element << block.element_shift), other=int(entry[site]))
            return


def record_write(request: Request, block: BlockState, elements: slice, *, adds: bool) -> None:
    """Record a write by an operation that another block issued."""
    rows = block.resident.far[elements]
    if rows.size:
        clock = request.block.resident.clocks[request.warp, request.warp]
        entry = rows[:, request.block.rank]
        entry[:, WRITE_CLOCK // 4], entry[:, WRITE_BY // 4] = clock, request.warp * LANES + request.first
        entry[:, WRITE_SITE // 4], entry[:, WRITE_STRONG // 4] = request.site, ATOMIC if adds else PLAIN
        block.resident.put(Block.VISITED, 1)


def visit(request: Request, block: BlockState, lane: int) -> None:
    """Record an access of the requesting warp to another block's memory; it must be ordered before that block's end."""
    clock = int(request.block.resident.clocks[request.warp, request.warp])
    block.resident.visits[request.block.rank, request.warp, : VISIT // 4] = clock, request.site, lane, 0


def absence(rank: int) -> str:
    """Return the message for an access to a block that may have ended."""
    return (
        f"an access to block {rank} of the cluster, which may have ended: nothing makes it wait until then, such as"
        " cluster.sync() behind the last access"
    )


def report_visits(block: BlockState, findings: Findings) -> None:
    """Report accesses to the memory of a block that ends, if nothing orders them before its end."""
    resident = block.resident
    if not block.checks:
        return
    known = np.maximum(resident.foreign[: resident.count].max(0), block.passed)
    late = resident.visits[:, :, 0] > known
    late[block.rank] = False
    for rank, warp in np.argwhere(late):
        _clock, site, lane, _ = (int(word) for word in resident.visits[rank, warp])
        message = absence(block.rank)
        place = block.cluster[rank].linear, int(warp) * LANES + lane, site
        findings.add(Finding(CLUSTER, message, *place, state=True, mentions=block.its_end()))
