"""Kernels that read their operands through textures: how their arguments are told, and what they are given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gemmlab.core.errors import UsageError
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.kernels.bound import place
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler

OP = GemmOp()
SOURCE = """
__device__ float fetch(cudaTextureObject_t texture, const float* base, long long at)
{
    if (texture == 0) return base[at];
    const long long texel = (unsigned long long)base % 512 / 16 + at / 4;
    const float4 four = tex1Dfetch<float4>(texture, (int)texel);
    return at % 4 == 0 ? four.x : at % 4 == 1 ? four.y : at % 4 == 2 ? four.z : four.w;
}

__global__ void textured(int M, int N, int K, const float* A, int lda, const float* B, int ldb, float* C, int ldc,
                         cudaTextureObject_t A_tex, cudaTextureObject_t texB)
{
    const int i = blockIdx.x / N, j = blockIdx.x % N;
    float sum = 0;
    for (int k = 0; k < K; ++k)
        sum += fetch(k / 4 * 4 + 4 <= K ? A_tex : 0, A, (long long)i * lda + k) *
               fetch(j / 4 * 4 + 4 <= N ? texB : 0, B, (long long)k * ldb + j);
    C[i * (long long)ldc + j] = sum;
}
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    path = tmp_path / "textured.cu"
    path.write_text(SOURCE)
    return user_kernel(path, grid="M * N", threads=1)


def test_textures_are_told_by_name_or_in_order(kernel: Kernel) -> None:
    assert kernel.args[-2:] == ("texture(a)", "texture(b)")
    said = "M, N, K, A, lda, B, ldb, C, ldc, texture(B), texture(A)"
    turned = user_kernel(kernel.path, grid="M * N", threads=1, args=said)
    assert turned.args[-2:] == ("texture(b)", "texture(a)")
    for last, why in (("A", "'A' cannot be"), ("texture(D)", "texture")):
        with pytest.raises(UsageError, match=why):
            user_kernel(kernel.path, grid="M * N", threads=1, args=said[:-10] + last)
    wrong = "M, N, K, A, lda, B, ldb, C, texture(A), 0, 0"
    with pytest.raises(UsageError, match=r"'texture\(A\)' cannot be 'int ldc'"):
        user_kernel(kernel.path, grid="M * N", threads=1, args=wrong)


def test_a_texture_of_nothing_is_none_of_the_operations_values(tmp_path: Path) -> None:
    path = tmp_path / "textured.cu"
    path.write_text(SOURCE.replace("texB)", "lookup)").replace("texB", "lookup"))
    with pytest.raises(UsageError, match="'cudaTextureObject_t lookup' is none of them"):
        user_kernel(path, grid="M * N", threads=1)


@pytest.mark.in_turns(20)
@needs_compiler
def test_it_is_right_with_textures_and_without(kernel: Kernel) -> None:
    cases = [
        GemmProblem(5, 8, 12),
        GemmProblem(3, 6, 5, lda=8, ldb=12),
        GemmProblem(4, 5, 7, lda=9),
        GemmProblem(1, 1, 1),
    ]
    report = check_kernel(kernel, EmulatedDevice("sm_90"), OP, cases=cases)
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("problem", "textured"),
    [
        (GemmProblem(2, 8, 4), (True, True)),
        (GemmProblem(2, 8, 6), (False, True)),
        (GemmProblem(2, 7, 4), (True, False)),
    ],
)
def test_a_matrix_whose_rows_are_aligned_has_a_texture(
    problem: GemmProblem, textured: tuple[bool, bool], kernel: Kernel
) -> None:
    device = EmulatedDevice("sm_90")
    contents = OP.fill(problem, np.random.default_rng(1))
    buffers = {name: device.upload(array.ravel()) for name, array in contents.items()}
    bound = place(kernel, device).bind(OP, problem, buffers)
    handles = bound.launches[0].args[-2:]
    assert [type(handle) for handle in handles] == [np.uint64] * 2
    assert tuple(bool(handle) for handle in handles) == textured
    seen = bound.observe()
    assert not seen.hazards
    assert seen.counters.facts()["texture_load_requests"] == problem.m * problem.n * problem.k * sum(textured)
