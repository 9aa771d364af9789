"""Copies by the copy engine are part of a roofline's traffic."""

from __future__ import annotations

import numpy as np
import pytest

from gemmlab.analysis.copied_bytes import Copied, copied_bytes
from gemmlab.core.counters import Counters, SiteCounters
from gemmlab.core.program import Launch
from gemmlab.core.tensor_map import BY_NAME, TiledMap, box_bytes
from support.cuda_source import needs_compiler
from support.explained_rungs import explained


def tensor_map(*box: int) -> np.void:
    found = TiledMap(BY_NAME["FLOAT32"], 1 << 20, (256, 256), (1024,), box, (1, 1))
    assert box_bytes(found.encode()) == found.nbytes
    return np.void(found.encode())


def counted(*opcodes: tuple[str, int]) -> Counters:
    return Counters("k", "emulated", tuple(SiteCounters(0, opcode, executed=times) for opcode, times in opcodes))


def test_copies_have_the_bytes_of_their_boxes() -> None:
    launch = Launch((np.int32(1), tensor_map(32, 32), tensor_map(32, 64)))
    counters = counted(("UTMALDG.2D", 3), ("UTMALDG.2D.MULTICAST", 2), ("LDG.E", 9))
    assert copied_bytes(counters, launch) == Copied(5 * 4096, 5 * 8192)
    assert copied_bytes(counters, launch).words == "boxes of tensor maps"


def test_bulk_copies_and_maps_in_memory_have_no_known_size() -> None:
    bulk = counted(("UBLKCP.S.G", 4), ("UBLKCP.G.S", 7))
    assert copied_bytes(bulk, Launch(())) == Copied(unknown=4)
    assert copied_bytes(counted(("UTMALDG.2D", 3)), Launch(())) == Copied(unknown=3)
    assert Copied(unknown=1).words == "operands once for bulk copies"
    assert copied_bytes(counted(("LDG.E", 9)), Launch((tensor_map(32, 32),))).words == ""


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_roofline_of_a_kernel_that_copies_boxes_has_its_operands() -> None:
    report = explained("tma_pipeline").roofline
    reads, writes = 2 * 4 * 256 * 256, 4 * 256 * 256
    l2 = next(level for level in report.levels if level.name == "L2")
    # The smallest boxes are those of 32 x 32; without copies only what is written was left.
    assert writes + reads / 2 < l2.bytes_least < reads + writes < l2.bytes_most
    assert "boxes of tensor maps" in l2.how
