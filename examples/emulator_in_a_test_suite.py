"""Tests of a CUDA kernel that need no GPU: its results, its hazards, and its use of the memories.

Run with pytest. The emulator runs the machine code that a GPU would run, so its counts are exact and no test is flaky.
"""

import numpy as np
import pytest

import gemmlab

# A block of 32 x 8 threads transposes a tile of 32 x 32. PAD words after each row put a column into 32 different banks.
SOURCE = """
template <int PAD> __global__ void transpose(int rows, int cols, const float* in, float* out)
{
    __shared__ float tile[32][32 + PAD];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8)
        if (x < cols && y + i < rows) tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * cols + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8)
        if (x < rows && y + i < cols) out[(y + i) * rows + x] = tile[threadIdx.x][threadIdx.y + i];
}
"""


def run(rows, cols, pad=1, source=SOURCE):
    x = np.arange(rows * cols, dtype=np.float32).reshape(rows, cols)
    arguments = {"rows": rows, "cols": cols, "in": x, "out": np.full((cols, rows), np.nan, np.float32)}
    grid = (-(-cols // 32), -(-rows // 32))
    return x, gemmlab.launch(source, f"transpose<{pad}>", grid, (32, 8), arguments, device="emulated:sm_90")


@pytest.mark.parametrize(("rows", "cols"), [(64, 32), (33, 31), (1, 70)])
def test_it_transposes_without_hazards(rows, cols):
    x, done = run(rows, cols)
    assert np.array_equal(done.outputs["out"], x.T)
    assert [hazard.explain() for hazard in done.hazards] == []  # bounds, races, unwritten reads, barriers


def test_global_memory_is_used_in_whole_sectors():
    facts = run(64, 64)[1].counters.facts()
    assert facts["global_load_sectors_per_request"] == 4  # 32 floats in a row
    assert facts["global_store_sectors_per_request"] == 4


@pytest.mark.parametrize(("pad", "wavefronts"), [(1, 1), (0, 32)])
def test_a_word_of_padding_removes_the_bank_conflicts(pad, wavefronts):
    facts = run(64, 64, pad)[1].counters.facts()
    assert facts["shared_load_wavefronts"] == wavefronts * facts["shared_load_requests"]


def test_the_barrier_is_needed():
    hazards = run(64, 64, source=SOURCE.replace("__syncthreads();", ""))[1].hazards
    assert "race" in {hazard.kind for hazard in hazards}
