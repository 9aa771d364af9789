"""Waits for phases of mbarriers."""

from __future__ import annotations

import ctypes

from gemmlab.emulator.asynchronous.async_request import Request
from gemmlab.emulator.asynchronous.block_state import BlockState, PassedWait
from gemmlab.emulator.asynchronous.host_words import narrow, put_narrow, put_wide, wide
from gemmlab.emulator.asynchronous.mbarrier import Mbarrier
from gemmlab.emulator.asynchronous.mbarrier_calls import find
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.layout import Status, Wait, Warp
from gemmlab.emulator.services import service_addresses

PUSH = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_int32, ctypes.c_int64)


def check(request: Request) -> int:
    """Execute `Operation.CHECK`: test a phase for each lane that executes; the result is 1 if it has ended, else 0.

    If a phase has not ended, the running group waits and executes the instruction again, if the operand allows a wait;
    else the warp gives up the rest of its turn. A wait in `BlockState.excused` goes on with the result 0.
    """
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
    """Return whether the phase with a parity has ended; copies that it needs are completed before.

    If it has, accesses ordered before its arrivals are ordered before what the warp does next.
    """
    if mbarrier.word.phase == parity:
        mbarrier.settle(for_wait=True)
    if mbarrier.word.phase == parity:
        return False
    before = mbarrier.tests.get(request.warp)
    again = before is not None and before[2] == mbarrier.completed
    request.note("pass", mbarrier, mbarrier.completed - 1)
    wait = PassedWait(request.site, mbarrier.name, parity, again, request.block.tick())
    request.block.waits[request.warp] = wait
    mbarrier.tests[request.warp] = (request.site, parity, mbarrier.completed)
    if mbarrier.block.checks:
        request.block.acquire(request.warp, mbarrier.released)
    return True


def _wait(request: Request, mbarrier: Mbarrier) -> int:
    """Let the running group wait and execute the instruction again, unless the wait is among those excused."""
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
