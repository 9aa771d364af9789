"""A switch over a value that is the same for all threads: ptxas makes a branch through uniform registers (BRXU)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from gemmlab import launch

SOURCE = """
extern "C" __global__ void steps(const float* x, float* y, int kind, int count) {
    float v = x[threadIdx.x];
    for (int i = 0; i < count; ++i) {
        switch (kind) {
            case 0: v = v * 3 + i; __syncthreads(); break;
            case 1: v = v + 2; __syncthreads(); y[threadIdx.x + 64] = v; break;
            case 2: v = v * v; __syncthreads(); break;
            case 3: v = 1 - v; __syncthreads(); y[threadIdx.x + 128] = v; break;
            default: __syncthreads(); v = -v;
        }
        y[threadIdx.x] = v;
    }
}
"""
X = np.arange(1, 65, dtype=np.float32)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90a"])
@pytest.mark.parametrize("kind", [-1, 0, 1, 2, 3, 4])
@pytest.mark.sampled(6)
def test_every_case_is_taken(kind: int, arch: str) -> None:
    args = [X, np.zeros(192, np.float32), np.int32(kind), np.int32(3)]
    done: Any = launch(SOURCE, "steps", 1, 64, args, device=f"emulated:{arch}")
    want = X.copy()
    for i in range(3):
        want = {0: want * 3 + i, 1: want + 2, 2: want * want, 3: 1 - want}.get(kind, -want)
    assert not done.hazards
    assert np.array_equal(done.outputs[1][:64], want)
    if kind in (0, 1):  # ptxas tests the upper half of the cases before it jumps by the table
        assert any(site.base_opcode == "BRXU" and site.executed for site in done.counters.sites)
