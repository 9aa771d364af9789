"""Mbarriers of sm_80, whose word compiled code reads and changes itself, and arrivals that follow cp.async copies."""

from __future__ import annotations

import numpy as np

from gemmlab.emulator.async_calls import Arrival
from gemmlab.emulator.asynchronous.async_request import Request
from gemmlab.emulator.asynchronous.finding import MBARRIER
from gemmlab.emulator.asynchronous.mbarrier import Mbarrier
from gemmlab.emulator.asynchronous.mbarrier_calls import arrive_at, find
from gemmlab.emulator.asynchronous.mbarrier_word import MOST, Word
from gemmlab.emulator.layout import Status

_COUNT = (1 << 31) - 1
_EXPECTED = 1 << 30


def arrive_word(request: Request) -> int:
    """Arrive at mbarriers of sm_80 with every lane that executes; a lane's result is the word before its arrival."""
    for lane in request.lanes:
        address = request.operand(0, lane) & 0xFFFFFFFF
        block = request.target(address, "an mbarrier")
        mbarrier = block.mbarriers.get(address)
        at = block.offset(address)
        cell = block.resident.shared[at : at + 8].view(np.uint64)
        raw = int(cell[0])
        word = _word(raw)
        if not 1 <= word.expected <= MOST:
            request.fail(MBARRIER, "no mbarrier was initialised here before", address)
        if mbarrier is None:
            mbarrier = block.mbarriers[address] = Mbarrier(block, address, word, request.site, request.warp, 0)
            mbarrier.arriving = block.no_clocks()
        mbarrier.word = word
        request.answer(lane, raw)
        before = word.phase
        arrive_at(request, mbarrier, Arrival.ONE, 0, lane)
        if mbarrier.word.phase != before and block.checks:
            # Waiting threads read the word with ordinary loads: all warps learn what the arrivals knew.
            for warp in range(block.resident.count):
                block.acquire(warp, mbarrier.released)
    return Status.GO


def _word(raw: int) -> Word:
    pending = (1 << 31) - (raw >> 32 & _COUNT)
    return Word(_EXPECTED - (raw & 0xFFFFFFFF), pending & _COUNT, phase=raw >> 63, old=True)


def arrive_later(request: Request) -> int:
    """Arrive for the cp.async copies of every lane that executes; the caller has completed these copies."""
    mode = request.operand(1)
    for lane in request.lanes:
        address = request.operand(0, lane) & 0xFFFFFFFF
        arrive_at(request, find(request, address, lane), mode, 1, lane)
    return Status.GO
