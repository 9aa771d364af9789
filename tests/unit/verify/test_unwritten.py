"""Elements that no thread wrote are told from those that a kernel made NaN by reading what it must not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmlab.analysis.subject import machine, observe
from gemmlab.devices.select import open_device
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.observe.counting import Count, count_kernels
from gemmlab.ops.gemm import GemmOp
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler

KERNEL = """
__global__ void mine(const float* A, const float* B, float* C, int M, int N, int K)
{
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
"""


def written(folder: Path, old: str = "", new: str = "") -> Path:
    path = folder / "mine.cu"
    path.write_text(KERNEL.replace(old, new) if old else KERNEL, encoding="utf-8")
    return path


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_grid_with_exchanged_axes_is_told_by_what_no_thread_wrote(tmp_path: Path) -> None:
    kernel = user_kernel(written(tmp_path), grid="ceil_div(M, 16), ceil_div(N, 16)", threads="16, 16")
    op = GemmOp()
    told = check_kernel(kernel, open_device("emulated"), op).details()
    assert "no thread wrote c[32.., 0..]: do grid and threads cover all of it?" in told
    assert "always_reads" not in told
    assert "held NaN" not in told
    (wrong,) = [one for one in observe(kernel, *machine(""), {}, "48x16x16").wrong if "no thread" in one]
    assert wrong.startswith("no thread wrote c[16.., 0..]")
    record = count_kernels(Count(op, open_device("emulated"), [kernel], op.parse_sizes("48x16x16")))
    assert any("no thread wrote c[16.., 0..]" in note for note in record.results[0].notes)


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    "reads", ["C[row * N + col] += sum", "C[row * N + col] = sum + 0.0f * C[row * N + col]"], ids=["adds", "factor 0"]
)
def test_a_kernel_that_reads_c_is_told_that_it_held_nan(tmp_path: Path, reads: str) -> None:
    path = written(tmp_path, "C[row * N + col] = sum", reads)
    kernel = user_kernel(path, grid="ceil_div(N, 16), ceil_div(M, 16)", threads="16, 16")
    told = check_kernel(kernel, open_device("emulated"), GemmOp()).details()
    assert "no thread wrote" not in told
    assert "c held NaN before the call, because nothing is added to it" in told
    assert 'state always_reads = ["C"]' in told


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("store", "kind"),
    [
        ("if (col % 4 == 0) *(float4*)&C[row * N + col] = make_float4(sum, sum, sum, sum);", "misaligned"),
        ("if (col % 4 == 0) *(float4*)&C[row * N + col] = make_float4(0, 0, 0, 0);", "misaligned"),
        ("C[M * N + row * N + col] = sum;", "out of bounds"),
    ],
)
def test_writes_that_are_not_made_are_told_as_such(tmp_path: Path, store: str, kind: str) -> None:
    """An element that is not written keeps its NaN. That does not mean that the kernel reads C."""
    path = written(tmp_path, "C[row * N + col] = sum;", store)
    kernel, op = user_kernel(path, grid="ceil_div(N, 16), ceil_div(M, 16)", threads="16, 16"), GemmOp()
    told = check_kernel(kernel, open_device("emulated"), op, cases=op.parse_sizes("16,16x16x0,32,48")).details()
    assert f"c was not written where writes are {kind}: those are not made" in told
    assert "always_reads" not in told
    assert "no thread wrote" not in told


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("ends", "kind"),
    [
        ('asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(4));', "misaligned"),
        ("__trap();", "trap"),
        ('asm volatile("barrier.sync 1, 64;");', "deadlock"),
        ("while (true) __nanosleep(1);", "endless loop"),
    ],
)
def test_where_a_hazard_ended_the_run_nothing_is_said_of_the_grid(tmp_path: Path, ends: str, kind: str) -> None:
    path = written(tmp_path, "    int row =", f"    if (threadIdx.y == 1) {{ {ends} }}\n    int row =")
    kernel = user_kernel(path, grid="ceil_div(N, 16), ceil_div(M, 16)", threads="16, 16")
    op = GemmOp()
    record = count_kernels(Count(op, open_device("emulated"), [kernel], op.parse_sizes("48x16x16")))
    told = [
        check_kernel(kernel, open_device("emulated"), op, cases=op.parse_sizes("48x16x16")).details(),
        "\n".join(observe(kernel, *machine(""), {}, "48x16x16").wrong),
        "\n".join(record.results[0].notes),
    ]
    assert kind in told[0]
    assert kind in told[2]
    assert not [text for text in told if "no thread wrote" in text or "held NaN" in text]
