"""Predictions beside times of an RTX A6000 in siboehm's README, for kernels written here with the same accesses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gemmlab.analysis.model.quoted_prediction import modelled, quote
from gemmlab.analysis.subject import machine
from gemmlab.kernels.user_kernel import user_kernel
from support.cuda_source import needs_compiler

SIGNATURE = "int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C"
COALESCED = f"""__global__ void product({SIGNATURE}) {{
    const unsigned row = blockIdx.x * 32 + threadIdx.x / 32, col = blockIdx.y * 32 + threadIdx.x % 32;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = alpha * sum + beta * C[row * N + col];
}}
"""
SHARED = f"""__global__ void product({SIGNATURE}) {{
    __shared__ float As[32 * 32], Bs[32 * 32];
    const unsigned x = threadIdx.x % 32, y = threadIdx.x / 32;
    A += blockIdx.x * 32 * K; B += blockIdx.y * 32; C += blockIdx.x * 32 * N + blockIdx.y * 32;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += 32, A += 32, B += 32 * N) {{
        As[y * 32 + x] = A[y * K + x]; Bs[y * 32 + x] = B[y * N + x];
        __syncthreads();
        for (int k = 0; k < 32; ++k) sum += As[y * 32 + k] * Bs[k * 32 + x];
        __syncthreads();
    }}
    C[y * N + x] = alpha * sum + beta * C[y * N + x];
}}
"""


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_of_deep_tiles_is_studied_at_two_depths(tmp_path: Path) -> None:
    """Products of depths 64 and 128 are both rounded to 128 here; one depth would cost nothing more at 4096."""
    path = tmp_path / "product.cu"
    path.write_text(COALESCED, encoding="utf-8")
    stated: dict[str, Any] = {
        "grid": "ceil_div(M, 32), ceil_div(N, 32)",
        "threads": "1024",
        "always_reads": ["A", "B", "C"],
    }
    deep = user_kernel(path, require=["K % 128 == 0"], **stated)
    arch, gpu = machine("", "A6000")
    known = modelled(deep, arch, gpu, {})
    assert sorted(known.study.scripts) == [128.0, 256.0]
    free = user_kernel(path, **stated)
    usual = quote(modelled(free, arch, gpu, {}), free, {})
    assert quote(known, deep, {}).speed == pytest.approx(usual.speed, rel=0.05)


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.sampled(2)
@pytest.mark.parametrize(("source", "gflops"), [(COALESCED, 1986.5), (SHARED, 2980.3)])
def test_the_slow_kernels_of_an_a6000_are_not_twice_too_fast(tmp_path: Path, source: str, gflops: float) -> None:
    """The model once predicted 2.1 and 1.6 times these speeds."""
    path = tmp_path / "product.cu"
    path.write_text(source, encoding="utf-8")
    kernel = user_kernel(path, grid="ceil_div(M, 32), ceil_div(N, 32)", threads="1024", always_reads=["A", "B", "C"])
    arch, gpu = machine("", "A6000")
    predicted = quote(modelled(kernel, arch, gpu, {}), kernel, {})
    assert (gpu.name, predicted.size) == ("RTX A6000", "4096x4096x4096 beta=1")
    assert predicted.speed == pytest.approx(gflops, rel=0.2)
