"""Any launch is explained: of source, PTX or a cubin, in Python and on the command line."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import gemmlab
from gemmlab.cli.app import build_app
from gemmlab.core.errors import CompileError, NoCompilerError, UsageError
from gemmlab.instruments.random_launch import arguments
from support.cuda_source import needs_compiler

SOURCE = """
extern "C" __global__ void axpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void transpose(const float* in, float* out) {
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
"""
PTX = """.version 7.0
.target sm_75
.address_size 64
.visible .entry fill(.param .u64 out) {
    .reg .u64 %address; .reg .u64 %offset; .reg .u32 %lane; .reg .f32 %one;
    ld.param.u64 %address, [out];
    mov.u32 %lane, %tid.x;
    mul.wide.u32 %offset, %lane, 4;
    add.u64 %address, %address, %offset;
    mov.f32 %one, 0f3F800000;
    st.global.f32 [%address], %one;
    ret;
}
"""
needs_ptxas = pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on PATH")


def run(*arguments: str) -> Any:
    return CliRunner().invoke(build_app(), ["explain", *arguments])


def axpy(count: int = 1024, **more: Any) -> Any:
    x = np.ones(1024, np.float32)
    return gemmlab.launch(SOURCE, "axpy", 4, 256, [count, 2.0, x, x * 0], device="emulated", **more)


@pytest.mark.in_turns(20)
@needs_compiler
def test_work_is_what_was_executed() -> None:
    explained = axpy().explain()
    size = explained.subject.size
    # A multiply-add of each element; x and y are read and y is written.
    assert (size.flops, size.bytes_moved, explained.subject.unit) == (2048, 8192, "GFLOP/s")
    assert explained.roofline.bound_by == "DRAM at this launch"
    assert explained.roofline.bound == pytest.approx(4800 * 2048 / 8192)
    assert axpy().explain("H100").roofline.bound == pytest.approx(3350 * 2048 / 8192)
    assert str(explained).startswith("axpy: sm_90 code on H200")
    assert explained.to_json()["op"] is None


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_90"])
def test_findings_name_the_line_of_any_kernel(arch: str) -> None:
    a = np.ones((32, 32), np.float32)
    done = gemmlab.launch(SOURCE, "transpose", 1, (32, 32), [a, a * 0], device=f"emulated:{arch}")
    explained = done.explain()
    assert (explained.subject.unit, explained.subject.arch) == ("GB/s", arch)
    assert explained.facts["shared_load_excess"] == 31 * 32
    assert "transpose.cu:10: bank conflicts" in str(explained)


@pytest.mark.in_turns(20)
@needs_compiler
def test_hazards_come_first_and_a_gpu_of_another_kind_is_refused() -> None:
    explained = axpy(1025).explain()
    assert explained.subject.hazards == ()
    x = np.ones(1024, np.float32)
    beyond = gemmlab.launch(SOURCE, "axpy", 5, 256, [1280, 2.0, x, x * 0], device="emulated").explain()
    assert "out of bounds" in str(beyond).split("\n")[1]
    with pytest.raises(UsageError, match="A100"):
        axpy().explain("A100")


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_launch_that_nothing_counted_cannot_be_explained() -> None:
    with pytest.raises(UsageError, match="a launch on a GPU is not counted"):
        replace(axpy(), counters=None).explain()


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_cubin_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "axpy.cubin"
    file.write_bytes(axpy().artifact.code)
    shape = ("--kernel", "axpy", "--grid", "4", "--threads", "256")
    result = run(str(file), *shape, "--args", "1024, 2.0, float32[1024], float32[32x32]", "--json")
    (explained,) = json.loads(result.stdout)["kernels"]
    assert (result.exit_code, explained["kernel"], explained["size"]) == (0, "axpy", "this launch")
    assert explained["resources"]["registers"] > 0
    result = run(str(file), *shape, "--args", "1024, 2.0, float32[1000], float32[1024]")
    assert (result.exit_code, "out of bounds" in result.stdout) == (1, True)
    result = run(str(file), "--kernel", "axpy")
    assert (result.exit_code, "state --grid, --threads, --args" in result.output) == (2, True)
    result = run(str(file), "--grid", "4")
    assert (result.exit_code, "state --kernel, --threads, --args" in result.output) == (2, True)


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_only_kernel_of_a_cubin_needs_no_name(tmp_path: Path) -> None:
    (tmp_path / "one.cu").write_text(SOURCE.partition('extern "C" __global__ void transpose')[0])
    file = tmp_path / "one.cubin"
    assert CliRunner().invoke(build_app(), ["compile", str(tmp_path / "one.cu"), "--out", str(file)]).exit_code == 0
    shape = ("--grid", "4", "--threads", "256", "--args", "1024, 2.0, float32[1024], float32[1024]", "--json")
    assert json.loads(run(str(file), *shape).stdout)["kernels"][0]["kernel"] == "axpy"


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_of_any_operation_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own.cu"
    file.write_text(SOURCE)
    flags = ("--kernel", "transpose", "--grid", "1", "--threads", "32, 32", "--args", "float32[32x32], float32[32x32]")
    result = run(str(file), *flags, "--gpu", "RTX 3090")
    assert (result.exit_code, "sm_86 code" in result.stdout) == (0, True)
    result = run(str(file), *flags, "--sizes", "32")
    assert (result.exit_code, "a launch is explained alone" in result.output) == (2, True)


@pytest.mark.in_turns(20)
@needs_ptxas
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_ptx_is_assembled_for_the_architecture_asked_for(tmp_path: Path, arch: str) -> None:
    file = tmp_path / "fill.ptx"
    file.write_text(PTX)
    done = gemmlab.launch(file, "fill", 1, 32, [np.zeros(32, np.float32)], device="emulated", arch=arch)
    assert isinstance(done.outputs, list)
    assert (done.artifact.target, done.outputs[0].tolist(), done.hazards) == (arch, [1.0] * 32, ())
    gpu = {"sm_80": "A100", "sm_90": "H200"}[arch]
    result = run(str(file), "--kernel", "fill", "--grid", "1", "--threads", "32", "--args", "float32[32]", "--gpu", gpu)
    assert (result.exit_code, f"{arch} code" in result.stdout) == (0, True)
    file.write_text(PTX.replace("st.global.f32 [%address]", "st.global.f32 [%nothing]"))
    with pytest.raises(CompileError, match=r"fill\.ptx for sm_80 does not assemble:\n.*line 11"):
        gemmlab.launch(file, "fill", 1, 32, [None], device="emulated:sm_80")


@pytest.mark.in_turns(20)
@needs_ptxas
def test_the_only_kernel_of_ptx_needs_no_name_and_its_origin_is_told(tmp_path: Path) -> None:
    file = tmp_path / "fill.ptx"
    file.write_text(f"// .entry other(\n/* .entry third( */\n{PTX}")
    launch = ("--grid", "1", "--threads", "32", "--args", "float32[32]")
    result = run(str(file), *launch)
    assert (result.exit_code, "sm_90 code (PTX, ptxas of CUDA " in result.stdout) == (0, True), result.output
    listed = CliRunner().invoke(build_app(), ["sass", str(file)])
    assert "sm_90 code (PTX, ptxas of CUDA " in listed.stdout
    file.write_text(PTX + PTX.partition(".address_size 64")[2].replace("fill", "again"))
    result = run(str(file), *launch)
    assert (result.exit_code, "to explain a launch, state --kernel" in result.output) == (2, True)


@needs_ptxas
def test_ptx_that_is_newer_than_the_assembler_is_told_with_both_versions(tmp_path: Path) -> None:
    file = tmp_path / "fill.ptx"
    file.write_text(re.sub(r"\.version \S+", ".version 99.7", PTX))
    told = r"fill\.ptx is PTX of version 99\.7, and \S*ptxas of CUDA \d+\.\d+ reads none above \d+\.\d+: use ptxas"
    with pytest.raises(CompileError, match=told):
        gemmlab.launch(file, "fill", 1, 32, [None], device="emulated:sm_80")
    explained = run(str(file), "--kernel", "fill", "--grid", "1", "--threads", "32", "--args", "float32[32]")
    listed = CliRunner().invoke(build_app(), ["sass", str(file)])
    for result in (explained, listed):
        # The console may break the line where it ends.
        assert (result.exit_code, re.search(told, " ".join(result.output.split())) is None) == (2, False)


@needs_ptxas
def test_ptx_for_a_newer_architecture_is_told_with_both(tmp_path: Path) -> None:
    file = tmp_path / "fill.ptx"
    file.write_text(re.sub(r"\.target \S+", ".target sm_86", re.sub(r"\.version \S+", ".version 7.8", PTX)))
    with pytest.raises(CompileError, match=r"^fill\.ptx is PTX for sm_86 or newer, not for sm_80$"):
        gemmlab.launch(file, "fill", 1, 32, [None], device="emulated:sm_80")


def test_without_an_assembler_ptx_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "fill.ptx"
    file.write_text(f"// not assembled before\n{PTX}")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoCompilerError, match="no ptxas on PATH"):
        gemmlab.launch(file, "fill", 1, 32, [None], device="emulated:sm_90")


@pytest.mark.parametrize("text", ["x", "float32[]", "float32[4", "float31[4]", "float32[40000x40000]", "1.2.3"])
def test_arguments_that_mean_nothing_are_named(text: str) -> None:
    with pytest.raises(UsageError, match="--args"):
        arguments(f"1, {text}")


def test_arguments() -> None:
    one, two, nothing, array, indices = arguments("1, 2.5, null, float16[3x4], int32[5]")
    assert (one, two, nothing) == (1, 2.5, None)
    assert (array.dtype, array.shape, indices.dtype, indices.max() <= 1) == (np.float16, (3, 4), np.int32, True)
