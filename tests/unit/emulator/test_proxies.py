"""Races of the asynchronous proxy are reported at the address of the element, of four bytes or of one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gemmlab.emulator.asynchronous.async_request import Request
from gemmlab.emulator.asynchronous.block_state import FENCES, BlockState
from gemmlab.emulator.asynchronous.finding import PROXY, RACE, Findings
from gemmlab.emulator.asynchronous.proxies import begin_read, check_write, end_read
from gemmlab.emulator.geometry import Geometry
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.layout import LANES, Warp
from gemmlab.emulator.races import READ_BY, READ_CLOCK, WRITER, WRITER_CLOCK
from gemmlab.emulator.resident import Resident

LOW, NBYTES, ELEMENT = 1024, 64, 5
INSTRUCTION = np.zeros(Insn.SIZE, np.uint8)


def _block(*, byte_races: bool) -> BlockState:
    geometry = Geometry(
        grid=(1, 1, 1), threads=(2 * LANES, 1, 1), shared_low=LOW, shared_bytes=NBYTES, registers=8, local_bytes=0,
        constants={}, check_races=True, byte_races=byte_races,
    )  # fmt: skip
    state = BlockState(Resident(geometry, 0))
    state.resident.begin(0)
    state.begin([state], 0)
    return state


def _request(block: BlockState) -> Request:
    return Request(block, block.warp(1), INSTRUCTION.ctypes.data, 1, 0, 0, Findings())


def _written(block: BlockState) -> None:
    """Record a write of the element by warp 0."""
    row = block.shadow()[ELEMENT]
    row[WRITER_CLOCK // 4], row[WRITER // 4] = block.resident.clocks[0, 0], 3


def _read_after_write(block: BlockState, request: Request) -> None:
    _written(block)
    begin_read(request, block, LOW, NBYTES)


def _write_after_read(block: BlockState, request: Request) -> None:
    row = block.shadow()[ELEMENT]
    row[READ_CLOCK // 4], row[READ_BY // 4] = block.resident.clocks[0, 0], 3
    check_write(request, block, LOW, NBYTES)


def _write_during_read(block: BlockState, request: Request) -> None:
    reading = begin_read(request, block, LOW, NBYTES)
    assert reading is not None
    _written(block)

    def report(message: str, address: int, other: int) -> None:
        request.report(RACE, message, address, other=other)

    end_read(block, reading, LOW, report, (1, 0, 1))


def _fence(block: BlockState, lane: int) -> None:
    """A proxy fence of a lane of warp 0, and a barrier arrival behind it."""
    block.resident.warps[0, Warp.PROXY_FENCES + 4 * lane] += 1
    block.fence(0)
    block.resident.clocks[0, 0] += 1


@pytest.mark.parametrize("later", [0, FENCES - 1, FENCES, 3 * FENCES])
@pytest.mark.parametrize("lane", [3, 4])
def test_a_fence_counts_however_many_the_warp_executes_after_it(lane: int, later: int) -> None:
    block = _block(byte_races=False)
    request = _request(block)
    _written(block)
    _fence(block, lane)
    block.resident.clocks[1, 0] = block.resident.clocks[0, 0] - 1
    for _ in range(later):
        _fence(block, 5)
    begin_read(request, block, LOW, NBYTES)
    # Lane 3 wrote.
    assert [found.kind for found in request.findings.all] == ([] if lane == 3 else [PROXY])


@pytest.mark.parametrize("bug", [_read_after_write, _write_after_read, _write_during_read])
@pytest.mark.parametrize(("byte_races", "size"), [(False, 4), (True, 1)])
def test_a_race_has_the_address_of_its_element(
    bug: Callable[[BlockState, Request], None], byte_races: bool, size: int
) -> None:
    block = _block(byte_races=byte_races)
    request = _request(block)
    bug(block, request)
    assert [(found.kind, found.address) for found in request.findings.all] == [(RACE, LOW + ELEMENT * size)]
