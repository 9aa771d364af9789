"""`gemmlab compile` with files of one's own, and files that it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.core import gpu
from gemmlab.core.errors import RecordError
from gemmlab.kernels.catalog import find_kernel
from gemmlab.precompile.sweep import load_sweep
from support.compile_command import answer, refused, run
from support.cuda_source import needs_compiler

pytestmark = needs_compiler

MINE = """#include <cuda_runtime.h>
template <int T> __device__ float times(float x) { return x * T; }
__global__ void twice(float* x) { x[threadIdx.x] = times<2>(x[threadIdx.x]); }
__global__ void thrice(float* x) { x[threadIdx.x] = times<3>(x[threadIdx.x]); }
"""
TEMPLATE = "template <int T> __global__ void scale(float* x) { __shared__ float s[T]; s[0] = *x; *x = s[*(int*)x]; }\n"


@pytest.mark.in_turns(20)
def test_the_machine_code_of_a_file_is_written_and_read_again(folder: Path) -> None:
    (folder / "mine.cu").write_text(MINE)
    run = CliRunner().invoke
    ended = run(build_app(), ["compile", "mine.cu", "--kernel", "twice", "--out", "mine.cubin"])
    assert ended.exit_code == 0, ended.output
    assert "mine.cubin: " in ended.output
    checked = run(build_app(), ["check", "mine.cubin"])
    assert "no fault in the control codes" in checked.output
    assert run(build_app(), ["compile", "mine.cu", "--kernel", "twice", "--out", "mine.ptx"]).exit_code == 0
    assert ".entry" in (folder / "mine.ptx").read_text()


@pytest.mark.in_turns(20)
def test_one_file_holds_one_kernel(folder: Path) -> None:
    (folder / "mine.cu").write_text(MINE)
    for arguments in (["--out", "mine.cubin"], ["--kernel", "twice", "--arch", "sm_80,sm_90", "--out", "mine.cubin"]):
        ended = CliRunner().invoke(build_app(), ["compile", "mine.cu", *arguments])
        assert ended.exit_code == 2
        assert "holds one kernel, and these are 2: " in str(ended.exception) + ended.output
    assert not (folder / "mine.cubin").exists()
    many = CliRunner().invoke(build_app(), ["compile", "vector_load", "--out", "mine.cubin"])
    assert "--layouts (one of nn, nt, tn, tt)" in str(many.exception) + many.output
    (folder / "taken.cubin").mkdir()
    taken = CliRunner().invoke(build_app(), ["compile", "mine.cu", "--kernel", "twice", "--out", "taken.cubin"])
    assert taken.exit_code == 2
    assert "cannot write taken.cubin: it is a folder" in str(taken.exception) + taken.output
    other = CliRunner().invoke(build_app(), ["compile", "mine.cu", "--kernel", "twice", "--out", "mine.bin"])
    assert "a .cubin for machine code" in str(other.exception) + other.output


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own, and its folder as the current one."""
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.in_turns(20)
def test_a_kernel_that_is_not_for_an_architecture_is_left_out_unless_named(folder: Path) -> None:
    (folder / "new.cu").write_text(
        '/* gemmlab\nsummary = "s"\nop = "gemm"\narch = "sm_90"\ngrid = "M"\nthreads = "N"\n*/\n'
        "__global__ void f(int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb,\n"
        "                  float beta, float* C, int ldc) { C[0] = alpha; }\n"
    )
    assert answer("new.cu", "--arch", "sm_90")["kernels"][0]["instance"] == "f"
    assert "sm_90" in refused("new.cu", "--arch", "sm_80")


@pytest.mark.slow
@pytest.mark.timeout(240)  # it compiles 80 kernels
def test_a_sweep_is_a_record_that_can_be_read_back(folder: Path) -> None:
    path = folder / "sweep.json"
    result = run("block_tile", "--all-configs", "--arch", "sm_80,sm_90", "--save", str(path), "--processes", "2")
    assert result.exit_code == 0, result.output
    rows = load_sweep(path)
    kernel = find_kernel("block_tile")
    assert [row.config for row in rows if row.arch == "sm_80"] == list(kernel.configurations())
    assert len(rows) == 2 * len(list(kernel.configurations()))
    (default,) = answer("block_tile", "--arch", "sm_90")["kernels"]
    assert default["cached"]
    first = next(row for row in rows if row.arch == "sm_90")
    assert default["digest"].startswith(first.figures["code"])
    assert first.figures["registers"] == default["registers"]
    bm, bn, bk = (first.config[name] for name in ("BM", "BN", "BK"))
    assert first.figures["threads"] == bm * bn
    assert first.figures["smem_bytes"] == default["static_smem_bytes"] == 4 * bk * (bm + bn)
    fit = gpu.occupancy(gpu.limits("sm_90"), default["registers"], first.figures["smem_bytes"], bm * bn)
    assert (first.figures["blocks_per_sm"], first.figures["warps_per_sm"]) == (fit.blocks, fit.warps)
    # Some thousand of these lines must stay a file to look at.
    assert max(map(len, path.read_text().splitlines())) < 300
    path.write_text("{}")
    with pytest.raises(RecordError, match="compile-sweep"):
        load_sweep(path)


@pytest.mark.in_turns(20)
def test_files_of_ones_own(folder: Path) -> None:
    (folder / "mine.cu").write_text(MINE)
    (folder / "scale.cu").write_text(TEMPLATE)
    assert [row["instance"] for row in answer("mine.cu")["kernels"]] == ["twice", "thrice"]
    (row,) = answer("scale.cu", "--instance", "scale<64>")["kernels"]
    assert (row["instance"], row["static_smem_bytes"], row["config"]) == ("scale<64>", 256, {})
    said = refused("scale.cu")
    assert "scale.cu: scale: name an instance of a template, as in --kernel 'scale<32>'" in said
    (folder / "none.cu").write_text("__device__ int x;\n")
    assert "none.cu: no __global__ function is defined there" in refused("none.cu")
    assert "gone.cu" in refused("gone.cu")


@pytest.mark.in_turns(20)
def test_what_does_not_compile_ends_with_2_after_the_rest(folder: Path) -> None:
    (folder / "broken.cu").write_text("__global__ void f(int* x) {\n  x[0] = y;\n}\n")
    result = run("broken.cu", "naive")
    assert result.exit_code == 2
    assert "naive" in result.stdout
    assert "f (f) for sm_90 does not compile:" in result.stdout
    assert 'broken.cu:2: error: identifier "y" is undefined' in result.stdout
    result = run("broken.cu", "naive", "--json")
    told = json.loads(result.stdout)
    assert (result.exit_code, len(told["kernels"])) == (2, 1)
    assert "broken.cu:2: error" in told["errors"]["f for sm_90"]
