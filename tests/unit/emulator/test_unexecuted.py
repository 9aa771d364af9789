"""Counters of instructions that a launch does not run are made once a kernel."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from gemmlab.core.counters import SiteCounters
from gemmlab.core.program import Launch, Program
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.toolchain.build_cuda import build

SOURCE = """
extern "C" __global__ void branches(float *x, int n) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (n == 1) x[threadIdx.x] = tile[63 - threadIdx.x];
    if (n == 2) atomicAdd(x, tile[threadIdx.x]);
    if (n == 3) __nanosleep(n);
}
"""


def sites(n: int) -> tuple[SiteCounters, ...]:
    artifact = build(Program("branches", "cuda", "sm_90", "branches", "branches", lambda: SOURCE))
    device = EmulatedDevice("sm_90")
    loaded, buffer = device.load(artifact), device.upload(np.ones(64, np.float32))
    found = device.observe(loaded, Launch((buffer, np.int32(n)), (1, 1, 1), (64, 1, 1), 0)).counters.sites
    assert len(found) == len(loaded.image.code.instructions)
    return found


def test_every_instruction_has_its_place_kind_and_counts() -> None:
    idle, stores, adds = sites(0), sites(1), sites(2)
    assert [site.address for site in idle] == [16 * index for index in range(len(idle))]
    ran = [site for site in stores if site.executed]
    assert {site.kind for site in ran} >= {"shared load", "shared store", "global load", "global store", "barrier"}
    assert not [site for site in idle if site.kind == "global store" and site.executed]
    assert sum(site.executed for site in adds if site.kind == "global atomic")
    for one, other in zip(idle, stores, strict=True):
        assert (one.opcode, one.text, one.line, one.kind) == (other.opcode, other.text, other.line, other.kind)
        # Both launches share what neither of them ran.
        assert (one is other) == (not one.executed and not other.executed)
        if not one.executed:
            assert (one.active_threads, one.requests, one.sectors, one.wavefronts, one.pattern) == (0, 0, 0, 0, ())
