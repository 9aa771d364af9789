"""Kernels whose pages are tested: one of a user's, with a race, bank conflicts and a header."""

from __future__ import annotations

from pathlib import Path

from gemmlab.analysis.explanation import Explanation, explain
from gemmlab.analysis.subject import machine
from gemmlab.kernels.by_name import kernel_named

GRID, THREADS = "ceil_div(N, 32), ceil_div(M, 32)", "32, 32"
HEADER = """#pragma once
__device__ inline float fetch(const float* matrix, int row, int col, int width, int height) {
    return row < height && col < width ? matrix[row * width + col] : 0.0f;
}
"""
SOURCE = """#include "helper.cuh"
__global__ void mine(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C) {
    __shared__ float As[32][32];
    __shared__ float Bs[32][33];
    int row = blockIdx.y * 32 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < K; k += 32) {
        As[threadIdx.x][threadIdx.y] = fetch(A, row, k + threadIdx.x, K, M);
        Bs[threadIdx.y][threadIdx.x] = fetch(B, k + threadIdx.y, col, N, K);
        __syncthreads();
        for (int i = 0; i < 32; ++i) sum += As[i][threadIdx.y] * Bs[i][threadIdx.x];
    }
    if (row < M && col < N) C[row * N + col] = alpha * sum + (beta == 0.0f ? 0.0f : beta * C[row * N + col]);
}
"""
STORE_OF_A, LOADS = 8, 11
"""Lines of SOURCE: its stores conflict; it reads what another iteration may already overwrite."""


def user_file(folder: Path) -> Path:
    """Write the file and its header, and return the file."""
    (folder / "helper.cuh").write_text(HEADER)
    path = folder / "mine.cu"
    path.write_text(SOURCE)
    return path


def explained(name: str, **config: int) -> Explanation:
    """Explain a kernel, or a file of `user_file`, for sm_90."""
    flags = {"grid": GRID, "threads": THREADS} if name.endswith(".cu") else {}
    arch, model = machine("sm_90")
    return explain(kernel_named(name, flags), arch, model, config)
