"""A tensor map that a kernel makes, and that the driver would refuse, is reported with the driver's rule in words."""

from __future__ import annotations

import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from async_runs import line_of
from buggy_launch import BuggyLaunch
from buggy_places import place_launches

MAPS = [each for each in place_launches() if each.name.startswith("map replaced")]


@pytest.mark.parametrize("launched", MAPS, ids=str)
def test_the_rule_and_the_copy_are_named(launched: BuggyLaunch) -> None:
    found = launched.run("emulated:sm_90a") or ()
    if not launched.bug:
        assert found == ()
        return
    assert found[0].kind == "tensor map"
    assert (
        "the box's innermost extent is no multiple of 16 bytes: 3 elements of FLOAT32 are 12 bytes" in found[0].message
    )
    assert found[0].line == line_of("map_misuse.cu", "REFUSED")
