"""The operations on mbarriers that instructions ask for."""

from __future__ import annotations

import ctypes

import numpy as np

from gemmlab.emulator.async_calls import Arrival
from gemmlab.emulator.asynchronous.async_request import Request
from gemmlab.emulator.asynchronous.block_state import BlockState
from gemmlab.emulator.asynchronous.finding import MBARRIER, MISALIGNED
from gemmlab.emulator.asynchronous.host_words import narrow, put_narrow, put_wide, wide
from gemmlab.emulator.asynchronous.mbarrier import Mbarrier
from gemmlab.emulator.asynchronous.mbarrier_word import MOST, ONE_ARRIVAL, initial
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.layout import Status, Wait, Warp
from gemmlab.emulator.services import service_addresses

EVERY_BIT = (1 << 64) - 1
PUSH = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_int32, ctypes.c_int64)


def initialise(request: Request) -> int:
    """Make a new mbarrier from the word that compiled code computes from its count."""
    address, word = request.operand(0, request.first) & 0xFFFFFFFF, request.operand(1, request.first)
    block = request.target(address, "an mbarrier")
    _require_place(request, block, address)
    fields = initial(word)
    if fields is None:
        request.fail(MBARRIER, f"an mbarrier is initialised with a count outside 1 to {MOST}", address)
        return Status.FAULT
    clock = int(block.resident.clocks[request.warp, request.warp])
    made = Mbarrier(block, address, fields, request.site, request.warp, clock, block.cluster_time)
    made.arriving = np.zeros_like(block.foreign)
    made.released = np.zeros_like(block.foreign)
    block.mbarriers[address] = made
    made.store()
    block.changed()
    return Status.GO


def _require_place(request: Request, block: BlockState, address: int) -> None:
    if address % 8:
        request.fail(MISALIGNED, "an mbarrier at an address that is no multiple of 8", address)
    if not block.holds(address, 8):
        request.fail("out of bounds", "an mbarrier outside the block's shared memory", address)


def find(request: Request, address: int, lane: int | None = None) -> Mbarrier:
    """Return the mbarrier at a shared address of the cluster. The launch ends if there is none."""
    block = request.target(address, "an mbarrier")
    found = block.mbarriers.get(address)
    if found is None:
        _require_place(request, block, address)
        request.fail(MBARRIER, "no mbarrier was initialised here before", address)
        raise AssertionError
    if not found.intact:
        request.report(MBARRIER, "the mbarrier's word was overwritten by ordinary stores", address, other=found.site)
        found.store()
    if block is request.block:
        ordered = found.warp == request.warp or found.clock <= block.resident.clocks[request.warp, found.warp]
        missing = "a barrier of the block"
    else:
        ordered, missing = block.cluster_time > found.cluster_time, "the cluster's barrier"
    if not ordered and block.checks:
        message = f"the mbarrier is used before {missing} makes its initialisation known to this thread"
        request.report(MBARRIER, message, address, other=found.site, lane=lane)
    return found


def arrive(request: Request) -> int:
    """Arrive with every lane, the lowest first."""
    mode, lanes = request.operand(2), request.lanes
    if mode & Arrival.TOGETHER:
        _states_together(request)
    column = request.column(0)
    if mode == Arrival.ONE and len({column[lane] for lane in lanes}) == 1:
        _arrive_in_turn(request, column[lanes[0]] & 0xFFFFFFFF, lanes)
        return Status.GO
    for lane in lanes:
        address = request.operand(0, lane) & 0xFFFFFFFF
        mbarrier = find(request, address, lane)
        if not mode & Arrival.TOGETHER:
            request.answer(lane, mbarrier.word.encoded())
        arrive_at(request, mbarrier, mode, request.operand(1, lane) & 0xFFFFFFFF, lane)
    return Status.GO


def _arrive_in_turn(request: Request, address: int, lanes: list[int]) -> None:
    """Arrive once with each lane, all at one mbarrier."""
    mbarrier = find(request, address, lanes[0])
    word = mbarrier.word.encoded()
    for number, lane in enumerate(lanes):
        request.answer(lane, word + number * ONE_ARRIVAL & EVERY_BIT)
    arrive_at(request, mbarrier, Arrival.COUNT, len(lanes), lanes[0])


def _states_together(request: Request) -> None:
    """Results of an arrival without completion: mask of the lanes with the same address, and upper half before them."""
    groups: dict[int, int] = {}
    for lane in request.lanes:
        address = request.operand(0, lane) & 0xFFFFFFFF
        groups[address] = groups.get(address, 0) | 1 << lane
    for lane in request.lanes:
        address = request.operand(0, lane) & 0xFFFFFFFF
        high = find(request, address, lane).word.encoded() >> 32
        request.answer(lane, high << 32 | groups[address])


def arrive_at(request: Request, mbarrier: Mbarrier, mode: int, operand: int, lane: int) -> None:
    """Make one thread's arrival, in the order: bytes to expect, arrivals, bytes that have come."""
    word = mbarrier.word
    if mode & (Arrival.EXPECT | Arrival.EXPECT_ONE):
        word.transactions += operand if mode & Arrival.EXPECT else 1
        if word.transactions > MOST:
            message = f"{word.transactions} bytes are expected in one phase; an mbarrier counts to {MOST}"
            request.report(MBARRIER, message, mbarrier.address, other=mbarrier.last, lane=lane)
            word.transactions = MOST
    count = operand if mode & Arrival.COUNT else 1 if mode & Arrival.ONE else 0
    if count > word.pending:
        have = "is" if word.pending == 1 else "are"
        waits = f"; the phase still lacks {mbarrier.lacks}" if word.transactions > 0 else ""
        message = f"too many arrivals: {count} where {word.pending} of {word.expected} {have} missing{waits}"
        request.report(MBARRIER, message, mbarrier.address, other=mbarrier.last, lane=lane)
        count = word.pending
    if mode & Arrival.DROP:
        word.expected = max(0, word.expected - count)
    if count:
        request.block.release(request.warp, mbarrier.arriving)
        mbarrier.last = request.site
    word.pending -= count
    if mode & Arrival.COMPLETE:
        word.transactions -= operand
    mbarrier.settle()


def invalidate(request: Request) -> int:
    """End the use of mbarriers."""
    for lane in request.lanes:
        address = request.operand(0, lane) & 0xFFFFFFFF
        find(request, address, lane).block.mbarriers.pop(address, None)
    return Status.GO


def check(request: Request) -> int:
    """Test phases. A group that may wait does so until the phases of all its lanes have ended."""
    failed: Mbarrier | None = None
    addresses, parities = request.column(0), request.column(1)
    ended: dict[tuple[int, int], bool] = {}
    for lane in request.lanes:
        key = addresses[lane] & 0xFFFFFFFF, parities[lane] >> 31 & 1
        if key not in ended:
            mbarrier = find(request, key[0], lane)
            ended[key] = _ended(request, mbarrier, key[1])
            failed = failed or (None if ended[key] else mbarrier)
        request.answer(lane, int(ended[key]))
    if failed is None:
        return Status.GO
    # A thread that only tests gives way to the others: it is likely to test again.
    return _wait(request, failed) if request.operand(2) else Status.SPENT


def _ended(request: Request, mbarrier: Mbarrier, parity: int) -> bool:
    """Return whether the phase has ended; if so, the warp knows what those who arrived knew."""
    if mbarrier.word.phase == parity:
        mbarrier.settle(for_wait=True)
    if mbarrier.word.phase == parity:
        return False
    mbarrier.tests[request.warp] = (request.site, parity, mbarrier.completed)
    if mbarrier.block.checks:
        request.block.acquire(request.warp, mbarrier.released)
    return True


def _wait(request: Request, mbarrier: Mbarrier) -> int:
    """Let the running group wait and execute the instruction again, unless its time is up."""
    warp, site = request.warp_address, request.site
    insn = request.instruction
    put_wide(insn + Insn.RETRIED, wide(insn + Insn.RETRIED) + 1)
    if (request.warp, site) in request.block.excused:
        request.block.excused.discard((request.warp, site))
        return Status.GO
    active = narrow(warp + Warp.ACTIVE)
    for field, count in (
        (Insn.EXECUTED, 1), (Insn.ACTIVE, active.bit_count()), (Insn.PREDICATED_ON, request.execute.bit_count())
    ):  # fmt: skip
        put_wide(insn + field, wide(insn + field) - count)
    mask = active - (active >> 31 << 32)
    PUSH(service_addresses()["push"])(warp, site, mask, Wait.MBARRIER, mbarrier.address)
    put_narrow(warp + Warp.ACTIVE, 0)
    mbarrier.waiting.append(warp)
    return Status.SWITCH


def waiting_groups(block: BlockState) -> list[tuple[int, int, int, int]]:
    """Return (warp, instruction, lanes, address) of every group of the block that waits for an mbarrier."""
    found = []
    for index in range(block.resident.count):
        warp = block.warp(index)
        for number in range(wide(warp + Warp.GROUPS)):
            group = warp + Warp.GROUP + number * Warp.GROUP_SIZE
            if narrow(group + 12) == Wait.MBARRIER:
                found.append((index, wide(group), narrow(group + 8), wide(group + 16)))
    return found


def excuse(block: BlockState) -> bool:
    """Let every group that waits for an mbarrier go on without success; return whether there is any."""
    groups = waiting_groups(block)
    for index, site, _lanes, _address in groups:
        warp = block.warp(index)
        for number in range(wide(warp + Warp.GROUPS)):
            group = warp + Warp.GROUP + number * Warp.GROUP_SIZE
            if narrow(group + 12) == Wait.MBARRIER:
                put_narrow(group + 12, Wait.READY)
        block.excused.add((index, site))
    for mbarrier in block.mbarriers.values():
        mbarrier.waiting.clear()
    return bool(groups)
