"""Convergence barriers: who leaves one, in what other lanes know of it."""

from __future__ import annotations

import numpy as np

from gemmlab.emulator.decode import decode
from gemmlab.emulator.geometry import Geometry
from gemmlab.emulator.instruction_layout import Event
from gemmlab.emulator.launch_layout import Launch
from gemmlab.emulator.layout import LANES, ROW, Status, Warp
from gemmlab.emulator.machine import run
from gemmlab.emulator.memory_map import MemoryMap
from gemmlab.sass.instruction import SassFunction
from support.isa_harness import ALL, Rig, program


def barrier(rig: Rig, number: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint32]]:
    """What each lane knows of it: the lanes that entered it together, and have not left."""
    return rig._words(Warp.CONVERGENCE + number * ROW, LANES)


def test_lanes_leave_the_barrier_that_they_entered_and_no_other_of_its_number() -> None:
    rig = Rig()
    known = barrier(rig, 7)
    # Lanes 0 to 7 are in a function that entered a barrier 7 of its own; 24 and 25 in one that another call entered.
    known[:] = ALL
    known[:8], known[24:26] = 0xFF, 0x03000000
    rig.run("BREAK B7", lanes=0x0100000F)
    expected = np.full(LANES, ALL, np.uint32)
    expected[:8], expected[24:26] = 0xF0, 0x02000000
    np.testing.assert_array_equal(known, expected)


def test_only_lanes_for_which_the_predicate_holds_leave() -> None:
    rig = Rig()
    known = barrier(rig, 0)
    known[:] = ALL
    rig.p[1] = 0x0000FFFF
    rig.run("BREAK !P1, B0")
    assert set(known.tolist()) == {0x0000FFFF}


def returning(lanes: int) -> Rig:
    """A program of 5 instructions that returns to its last one, in the lanes of 0xFF that are in `lanes`."""
    rig = Rig()
    rig.launch[Launch.CODE_COUNT : Launch.CODE_COUNT + 8].view(np.int64)[0] = 5
    rig.p[1] = lanes
    return rig


RETURN = "RET.REL.NODEC P1, R8 `(k)"


def test_lanes_for_which_a_second_predicate_holds_return() -> None:
    rig = returning(0x00000F0F)
    rig.set_pair(8, np.full(LANES, 0x40))
    assert rig.run(RETURN, lanes=0x000000FF) == Status.GO
    # The others go on, and those that returned wait: the lower instruction runs first.
    assert rig._words(Warp.ACTIVE, 1)[0] == 0xF0
    group = rig.warp[Warp.GROUP : Warp.GROUP + Warp.GROUP_SIZE]
    assert group[:8].view(np.int64)[0] == 4
    assert group[8:12].view(np.uint32)[0] == 0x0F


def test_a_return_that_no_lane_takes_looks_at_no_address() -> None:
    rig = returning(0)
    rig.set_pair(8, np.full(LANES, 0x7000))
    assert rig.run(RETURN, lanes=0x000000FF) == Status.GO
    assert rig._words(Warp.ACTIVE, 1)[0] == 0xFF
    assert len(rig.events) == 0


def test_a_return_to_no_instruction_names_the_first_lane_that_returns() -> None:
    rig = returning(0x000000F0)
    rig.set_pair(8, np.where(np.arange(LANES) < 4, 0x40, 0x7000))
    assert rig.run(RETURN, lanes=0x000000FF) == Status.FAULT
    (event,) = rig.events
    assert event[Event.THREAD // 8] == 4
    assert event[Event.ADDRESS // 8] == 0x7000


LEFT_MEANWHILE = (
    "S2R R0, SR_LANEID",
    "ISETP.GE.AND P0, PT, R0, 0x10, PT",
    "ISETP.GE.AND P1, PT, R0, 0x8, PT",
    "BSSY B7, `(.L_end)",
    "BSSY B6, `(.L_join)",
    "@P0 BRA `(.L_leave)",
    # What a function does that lanes 0 to 15 call: save the barrier, use it, restore it.
    "BMOV.32.CLEAR R16, B6",
    "BSSY B6, `(.L_restore)",
    "@P1 BRA `(.L_aside)",
    ".L_inner:",
    "BSYNC B6",
    ".L_restore:",
    "BMOV.32 B6, R16",
    "BSYNC B6",
    ".L_join:",
    "BRA `(.L_last)",
    # Lanes 16 to 31 leave while lanes 0 to 7 wait for 8 to 15 in the function.
    ".L_leave:",
    "BREAK B6",
    "BRA `(.L_last)",
    ".L_aside:",
    "BRA `(.L_inner)",
    ".L_last:",
    "BSYNC B7",
    ".L_end:",
    "EXIT",
)


def test_nobody_waits_for_lanes_that_left_while_the_barrier_was_saved_in_registers() -> None:
    code = decode(SassFunction("k", program(*LEFT_MEANWHILE), {"k": 0}))
    banks = {number: np.zeros(1024, np.uint8) for number in range(8)}
    geometry = Geometry((1, 1, 1), (LANES, 1, 1), 0, 0, 24, 0, banks)
    assert run(code, geometry, MemoryMap(), resident_limit=1).stopped == ""
