"""Races between accesses of the asynchronous proxy to shared memory and those of threads.

The race shadow (`emulator.races`) has each element's last writer and readers. A thread's write is visible to the
asynchronous proxy only if the thread executed a proxy fence after it, and a barrier orders the fence before the
operation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemmlab.emulator.asynchronous import far_accesses
from gemmlab.emulator.asynchronous.async_request import Request
from gemmlab.emulator.asynchronous.block_state import BlockState
from gemmlab.emulator.asynchronous.finding import PROXY, RACE
from gemmlab.emulator.layout import LANES, ROW, Status
from gemmlab.emulator.races import (
    BY_PROXY,
    READ_BY,
    READ_CLOCK,
    READ_SYNC,
    WRITER,
    WRITER_CLOCK,
    WRITER_FENCES,
    WRITER_INSTRUCTION,
    WRITER_SWIZZLE,
    WRITER_SYNC,
    WRITER_TIME,
)
from gemmlab.emulator.wgmma_layout import WARPGROUP

Rows = npt.NDArray[np.int32]
_ROW = ROW // 4


@dataclass(frozen=True, slots=True)
class Reading:
    """A read of shared memory that may last from an operation's issue to the wait for it.

    `writers` are the last writers of its elements at the issue.
    """

    elements: slice
    writers: Rows
    site: int


def fence(request: Request) -> int:
    """Record a proxy fence of the warp."""
    request.block.fence(request.warp)
    return Status.GO


def elements_of(block: BlockState, address: int, nbytes: int) -> slice:
    """Return the elements of the race shadow that contain these shared bytes of the block."""
    start = block.offset(address) - block.resident.geometry.shared_low
    shift = block.element_shift
    return slice(start >> shift, (start + nbytes - 1 >> shift) + 1)


def _known(request: Request, block: BlockState) -> npt.NDArray[np.int32]:
    """Return the clocks that the requesting warp knows of the block's warps."""
    row: npt.NDArray[np.int32] = request.block.known(request.warp)[block.rank]
    return row


def _compare_writers(
    request: Request, block: BlockState, rows: Rows, verb: str, address: int, *, proxy: bool = True, adds: bool = False
) -> None:
    clocks, writers = rows[:, WRITER_CLOCK // 4], rows[:, WRITER // 4]
    warps, lanes = writers >> 5, writers & 31
    mine = (warps == request.warp) & (block is request.block)
    fresh = clocks > block.start
    known = _known(request, block)
    fences = rows[:, WRITER_FENCES // 4]
    # Reductions do not race with each other.
    unordered = fresh & ~mine & (clocks > known[warps]) & ~(adds & (fences == BY_PROXY))
    written = fresh & ~unordered & (fences != BY_PROXY)
    fenced = np.zeros((LANES, LANES), np.int32)
    for warp in np.unique(warps[written]):
        fenced[warp] = block.fences_known(int(warp), int(known[warp]))
    unfenced = written & (fenced[warps, lanes] <= fences) & proxy
    late = "without a proxy fence (fence.proxy.async) by that thread between its write and what orders the two"
    for found, kind, message in (
        (unordered, RACE, "with nothing between that orders them"),
        (unfenced, PROXY, late),
    ):
        if found.any():
            row = int(found.argmax())
            thread = int(writers[row])
            where = address + (row << block.element_shift)
            text = f"{_subject(proxy)} {verb} shared memory that thread {thread} of the block wrote, {message}"
            request.report(kind, text, where, other=int(rows[row, WRITER_INSTRUCTION // 4]))


def _subject(proxy: bool) -> str:
    return "the asynchronous proxy" if proxy else "an asynchronous store"


def check_write(
    request: Request, block: BlockState, address: int, nbytes: int, *, proxy: bool = True, adds: bool = False
) -> None:
    """Compare a write with earlier accesses, report races, and record the write in the shadow.

    `proxy`: the asynchronous proxy makes the write; it does not make stores of registers (st.async), which need no
    proxy fence. `adds`: the write is a reduction.
    """
    if not block.checks:
        return
    elements = elements_of(block, address, nbytes)
    rows = block.shadow()[elements]
    _compare_writers(request, block, rows, "overwrites", address, proxy=proxy, adds=adds)
    does = f"{_subject(proxy)} overwrites"
    far_accesses.compare(request, block, elements, address, does, write=True, adds=adds)
    readers = rows[:, READ_CLOCK // 4 : READ_CLOCK // 4 + _ROW]
    unordered = (readers > _known(request, block)) & (readers > block.start)
    if block is request.block:
        unordered[:, request.warp] = False
    if unordered.any():
        row, warp = (int(index) for index in np.unravel_index(int(unordered.argmax()), unordered.shape))
        by = int(rows[row, READ_BY // 4 + warp])
        warpgroup = (LANES - 1 - warp) * WARPGROUP * LANES
        thread = warp * LANES + (by & 31) if warp < block.resident.count else warpgroup
        message = f"{_subject(proxy)} overwrites shared memory that thread {thread} may still read: nothing orders"
        wait = request.block.waits.get(request.warp)
        early = f" ({wait.words})" if wait is not None and wait.again else ""
        where = address + (row << block.element_shift)
        request.report(RACE, f"{message} the read before it{early}", where, other=by >> 11)
    check_stores(request, block, address, nbytes)
    local = block is request.block
    if not local:
        far_accesses.record_write(request, block, elements, adds=adds)
    rows[:, WRITER_CLOCK // 4] = block.resident.clocks[request.warp, request.warp] if local else 0
    rows[:, WRITER // 4] = request.warp << 5 | request.first
    rows[:, WRITER_SYNC // 4] = -1
    rows[:, WRITER_INSTRUCTION // 4] = request.site
    rows[:, WRITER_TIME // 4] += 1
    rows[:, WRITER_FENCES // 4] = BY_PROXY
    rows[:, WRITER_SWIZZLE // 4] = 0


def record_swizzle(block: BlockState, address: int, nbytes: int, number: int) -> None:
    """Record that the last write of these bytes, a tensor copy's, had the swizzle with this number in descriptors."""
    if block.checks:
        block.shadow()[elements_of(block, address, nbytes), WRITER_SWIZZLE // 4] = number


def check_stores(request: Request, block: BlockState, address: int, nbytes: int) -> None:
    """Report a write to memory that a bulk store still has to read."""
    mine = elements_of(block, address, nbytes)
    for groups in block.groups.values():
        for store in groups.reading:
            there = store.reading
            if there and there.elements.start < mine.stop and mine.start < there.elements.stop:
                message = "shared memory is overwritten while a bulk store still reads it: no wait for its group"
                request.report(RACE, message, address, other=there.site)


def begin_read(request: Request, block: BlockState, address: int, nbytes: int) -> Reading | None:
    """Compare a read by the asynchronous proxy with earlier writes, and return it; it lasts until `end_read`.

    Returns `None` if races are not checked.
    """
    if not block.checks:
        return None
    elements = elements_of(block, address, nbytes)
    rows = block.shadow()[elements]
    _compare_writers(request, block, rows, "reads", address)
    far_accesses.compare(request, block, elements, address, f"{_subject(True)} reads", write=False)
    return Reading(elements, rows[:, : WRITER_FENCES // 4 + 1].copy(), request.site)


def end_read(
    block: BlockState, reading: Reading, address: int, report: Callable[[str, int, int], None],
    by: tuple[int, int, int], others: str = "",
) -> None:  # fmt: skip
    """Report a write since `begin_read`, if there was one, and record the read in the shadow.

    `report` takes a message, an address and the other instruction. `by` is (reading warp of the block, its lane, its
    clock at the read). `others` are words that end the message if another warp wrote.
    """
    rows = block.shadow()[reading.elements]
    before, now = reading.writers, rows[:, : WRITER_FENCES // 4 + 1]
    warp, lane, clock = by
    changed = (before != now).any(1)
    if changed.any():
        row = int(changed.argmax())
        thread, site = int(now[row, WRITER // 4]), int(now[row, WRITER_INSTRUCTION // 4])
        message = (
            f"thread {thread} overwrites shared memory while a bulk operation still reads it: it was not waited for"
        )
        where = address + (row << block.element_shift)
        report(message + (others if thread // LANES != warp else ""), where, site)
    rows[:, READ_CLOCK // 4 + warp] = clock
    rows[:, READ_SYNC // 4 + warp] = -1
    rows[:, READ_BY // 4 + warp] = reading.site << 11 | lane
