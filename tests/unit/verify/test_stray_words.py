"""Reads of memory that nothing has written: no fault where the words reach no result, a fault where they do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gemmlab.analysis.explanation import explain
from gemmlab.analysis.subject import machine
from gemmlab.devices.select import open_device
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.observe.counting import Count, count_kernels
from gemmlab.ops.gemm import GemmOp
from gemmlab.verify.check import check_kernel
from gemmlab.verify.check_report import CheckReport
from support.cuda_source import needs_compiler

pytestmark = needs_compiler
OP = GemmOp()
KERNEL = """/* gemmlab
grid = "ceil_div(M, 8)"
threads = "32"
*/
__global__ void ahead(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float tile[64];
    int row = blockIdx.x * 8 + threadIdx.x % 8;
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    volatile float* seen = tile;
    float next = seen[threadIdx.x + USE_FROM];
    for (int col = threadIdx.x / 8; col < N; col += 4) {
        float sum = 0.0f;
        if (row < M) for (int k = 0; k < K; ++k) sum += A[(size_t)row * K + k] * B[(size_t)k * N + col];
        USE
        if (row < M) C[(size_t)row * N + col] = sum;
    }
}
"""


def report(folder: Path, use: str, first: int = 32) -> CheckReport:
    path = folder / "ahead.cu"
    path.write_text(KERNEL.replace("USE_FROM", str(first)).replace("USE", use), encoding="utf-8")
    return check_kernel(user_kernel(path), open_device("emulated:sm_80"), OP, cases=OP.parse_sizes("9x8x4,16"))


@pytest.mark.in_turns(20)
def test_words_that_are_not_used_are_named_and_forgiven(tmp_path: Path) -> None:
    found = report(tmp_path, "if (next == 5.0f && K < 0) sum = next;")
    assert found.passed, found.explain()
    (stray,) = found.stray
    assert "reads shared memory that nothing has written at" in stray
    assert "ahead.cu:11" in stray
    assert found.stray[stray] == 2
    assert "which reaches no result (2 cases)" in found.explain()


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    "use",
    [
        "sum += next == 0.0f ? 0.0f : 1.0f;",
        "sum = fmaxf(sum, next - 1.0e30f);",
        "if (__float_as_int(next) == -1) atomicAdd(C, 0.0f);",
    ],
)
def test_words_that_are_used_are_a_fault(tmp_path: Path, use: str) -> None:
    found = report(tmp_path, use)
    assert not found.passed
    assert not found.stray


@pytest.mark.in_turns(20)
def test_nothing_is_said_of_words_that_were_written(tmp_path: Path) -> None:
    found = report(tmp_path, "sum += 0.0f * next;", 0)
    assert (found.passed, found.stray) == (True, {})


@pytest.mark.in_turns(20)
def test_explain_and_bench_agree(tmp_path: Path) -> None:
    report(tmp_path, "if (next == 5.0f && K < 0) sum = next;")
    kernel = user_kernel(tmp_path / "ahead.cu")
    assert not explain(kernel, *machine("sm_80"), {}, "16").subject.hazards
    record = count_kernels(Count(OP, open_device("emulated:sm_80"), [kernel], OP.parse_sizes("16")))
    assert record.results[0].verified
    assert "which reaches no result" in record.results[0].notes[0]


def test_memory_holds_what_it_is_filled_with() -> None:
    device = open_device("emulated:sm_80")
    memory = device._memory  # type: ignore[attr-defined]
    written, room = device.upload(np.zeros(4, np.uint8)), device.allocate(4)
    memory.fill_unwritten(0x3F)
    assert (written.data == 0).all()  # type: ignore[attr-defined]
    assert (room.data == 0x3F).all()  # type: ignore[attr-defined]
