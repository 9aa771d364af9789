"""Convergence barriers: who leaves one, in what other lanes know of it."""

from __future__ import annotations

import numpy as np

from gemmlab.emulator.layout import LANES, ROW, Warp
from support.isa_harness import ALL, Rig


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
