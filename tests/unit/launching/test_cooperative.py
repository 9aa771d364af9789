"""Cooperative launches: all blocks wait for each other, where they fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import UsageError
from support.cuda_source import needs_compiler

pytestmark = needs_compiler
SOURCE = """
#include <cooperative_groups.h>
extern "C" __global__ void rotate(float* p) {
    auto grid = cooperative_groups::this_grid();
    const int own = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
    p[own] = own;
    grid.sync();
    const float next = p[(own + blockDim.x) % all];
    grid.sync();
    p[own] = next;
}
"""


def rotate(blocks: int, device: str, **more: Any) -> Any:
    out = np.zeros(max(1, blocks) * 64, np.float32)
    return gemmlab.launch(SOURCE, "rotate", blocks, 64, [out], device=device, timeout_s=60, **more)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"])
@pytest.mark.parametrize("blocks", [1, 2, 7])
def test_a_grid_waits_for_all_of_its_blocks(arch: str, blocks: int) -> None:
    done = rotate(blocks, f"emulated:{arch}", cooperative=True)
    assert done.hazards == ()
    assert (done.outputs[0] == np.roll(np.arange(blocks * 64), -64)).all()


OWN_BARRIER = """
extern "C" __global__ void meet(unsigned* count, unsigned* out) {
    if (threadIdx.x == 0) {
        atomicAdd(count, 1);
        while (ATOMIC ? atomicAdd(count, 0) < gridDim.x : *(volatile unsigned*)count < gridDim.x) continue;
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = *count;
}
"""


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_polls_that_repeat_are_not_counted(arch: str) -> None:
    counts = {blocks: rotate(blocks, f"emulated:{arch}", cooperative=True).counters for blocks in (1, 24)}
    single, many = (counts[blocks].facts() for blocks in (1, 24))
    # Each block but the last polls once more at each of two barriers, in at most 16 instructions.
    assert 0 <= many["instructions"] - 24 * single["instructions"] <= 2 * 23 * 16
    polls = [
        site for site in counts[24].sites if site.opcode.startswith("LD") and "STRONG" in site.text and site.executed
    ]
    assert [site.executed for site in polls] == [24 + 23, 24 + 23]
    assert [site.requests for site in polls] == [24 + 23, 24 + 23]
    assert counts[24].extra["grid_polls_repeated.sum"].value > 1000
    assert counts[1].extra["grid_polls_repeated.sum"].value == 0


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("atomic", [0, 1])
def test_nor_are_those_of_a_barrier_that_a_kernel_has_of_its_own(atomic: int) -> None:
    def met(blocks: int) -> Any:
        given = [np.zeros(1, np.uint32), np.zeros(blocks * 64, np.uint32)]
        done: Any = gemmlab.launch(
            OWN_BARRIER, "meet", blocks, 64, given, device="emulated:sm_80", options=[f"-DATOMIC={atomic}"],
            cooperative=True,
        )  # fmt: skip
        assert (done.outputs[1] == blocks).all()
        return done.counters.facts()["instructions"]

    assert met(24) <= 24 * met(1) + 23 * 16


@pytest.mark.in_turns(20)
def test_it_may_be_launched_again() -> None:
    assert rotate(3, "emulated:sm_90", cooperative=True).hazards == ()
    assert rotate(3, "emulated:sm_90", cooperative=True, races=True).hazards == ()


@pytest.mark.in_turns(20)
def test_another_launch_says_what_is_needed() -> None:
    (hazard,) = rotate(2, "emulated:sm_90").hazards
    assert (hazard.kind, "needs a cooperative launch (cooperative=True;" in hazard.message) == ("trap", True)


def test_blocks_that_are_not_resident_together_are_refused() -> None:
    with pytest.raises(UsageError, match=r"a cooperative launch of 5000 blocks; \d+ are resident together on H200"):
        rotate(5000, "emulated:sm_90", cooperative=True)
