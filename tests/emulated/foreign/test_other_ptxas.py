"""Forms that other versions of ptxas make than the one here: the text of its machine code is changed to theirs."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from gemmlab.core.program import Launch, Program
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.toolchain.build_cuda import build

SOURCE = """
extern "C" __global__ void __cluster_dims__(4) extent(unsigned* out) {
    unsigned blocks;
    asm volatile("mov.u32 %0, %cluster_nctaid.x;" : "=r"(blocks));
    out[threadIdx.x + blockDim.x * blockIdx.x] = blocks;
}
extern "C" __global__ void neighbour(unsigned* out) {
    unsigned value = out[threadIdx.x];
    if (value < 1000) {
        if (value & 1) value *= 3;
        value = __shfl_xor_sync(~0u, value, 1);
        out[threadIdx.x + 32] = value;
    }
    out[threadIdx.x] = value;
}
"""


def ran(kernel: str, old: str, new: str, blocks: int) -> npt.NDArray[np.uint32]:
    """Return the output of a kernel after the pattern `old` in its machine code became `new`."""
    made = build(Program(kernel, "cuda", "sm_90a", kernel, kernel, lambda: SOURCE))
    parts = made.texts["sass"].split(f".text.{kernel}:")
    changed, count = re.subn(old, new, parts[1])
    assert count
    device = EmulatedDevice("sm_90a")
    loaded = device.load(replace(made, texts={"sass": f".text.{kernel}:".join((parts[0], changed)), "ptx": ""}))
    out = np.arange(32 * max(blocks, 2), dtype=np.uint32)
    buffer = device.upload(out)
    seen = device.observe(loaded, Launch((buffer,), (blocks, 1, 1), (32, 1, 1), 0))
    assert not seen.hazards
    device.download(buffer, out)
    return out


@pytest.mark.in_turns(20)
def test_the_reciprocal_of_a_clusters_first_extent() -> None:
    """A block's cluster along x is its number times this, rounded down (nvcc 13.0)."""
    out = ran("extent", r"c\[0x0\]\[0x144\]", "c[0x0][0x150]", 4)
    assert set(out.view(np.float32).tolist()) == {0.25}


def test_a_collective_of_all_lanes_names_no_mask() -> None:
    """It has a label alone (nvcc 13.0); the one here is that of the loop behind the kernel's end."""
    out = ran("neighbour", r"WARPSYNC.ALL ", "WARPSYNC.COLLECTIVE.ALL `(.L_x_0) ", 1)
    values = np.arange(32, dtype=np.uint32) * np.where(np.arange(32) & 1, 3, 1)
    assert out.reshape(2, 32).tolist() == [values[np.arange(32) ^ 1].tolist()] * 2
