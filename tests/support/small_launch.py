"""Launches of one small block, of a source with a few kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

import gemmlab

SOURCE = """
extern "C" __global__ void axpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

template <int N> __global__ void widths(double* p, unsigned char small, long long large) {
    p[threadIdx.x] = N + small + large;
}

namespace mine { __global__ void mark(short* p) { p[threadIdx.x] = 7; } }

__global__ void dynamic(int* p) {
    extern __shared__ int shared[];
    shared[threadIdx.x] = threadIdx.x;
    __syncthreads();
    p[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}
"""
N = 10


def run(kernel: str = "axpy", args: Any = None, **more: Any) -> Any:
    """A launch of one small block."""
    x, y = np.arange(N, dtype=np.float32), np.ones(N, np.float32)
    given: dict[str, Any] = {"source": SOURCE, "grid": 1, "threads": 32, "device": "emulated"} | more
    return gemmlab.launch(
        given.pop("source"), kernel, given.pop("grid"), given.pop("threads"),
        (N, 2.0, x, y) if args is None else args, **given,
    )  # fmt: skip
