"""`gemmlab explain`: what it prints, its JSON, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.core.errors import GemmlabError
from support.cuda_source import needs_compiler

SOURCE = """
__global__ void product(int M, int N, int K, const float *A, const float *B, float *C) {
    __shared__ float s[32];
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y;
    float sum = 0;
    for (int k = 0; k < K; ++k) {
        s[threadIdx.x] = A[row * K + k];
        SYNC
        sum += s[(threadIdx.x + 1) % 32] * B[k * N + col];
        SYNC
    }
    C[row * N + col] = sum;
}
"""
FLAGS = ("--grid", "ceil_div(N, 32), M", "--threads", "32")


def run(*arguments: str) -> Any:
    return CliRunner().invoke(build_app(), ["explain", *arguments])


def write(folder: Path, sync: str) -> str:
    path = folder / "mine.cu"
    path.write_text(SOURCE.replace("SYNC", sync))
    return str(path)


@pytest.mark.in_turns(20)
@needs_compiler
def test_everything_of_one_kernel() -> None:
    result = run("vector_load")
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    for part in (
        "sm_90 code",
        "on H200; counted at 256x256x256 on emulated:sm_90, not timed",
        ": bank conflicts add",
        "67 % over all.",
        "Shown by: conflict_free.",
        "8,192 B a block + 1,024 B reserved",
        "vector_load.cu:",
        "LDS.128",
        "512 FFMA to 32 LDS.128",
        "bound by L1",
        "scaled from 256x256x256",
        "loop bytes",
    ):
        assert part in said, part


@pytest.mark.in_turns(20)
@needs_compiler
def test_json_is_one_document_with_every_part() -> None:
    result = run("naive", "--arch", "sm_80", "--sizes", "64x96x32", "--json")
    assert result.exit_code == 0, result.output
    (one,) = json.loads(result.stdout)["kernels"]
    assert (one["kernel"], one["arch"], one["gpu"], one["size"]) == ("naive", "sm_80", "A100", "64x96x32")
    assert one["occupancy"]["allowed"]["warps"] == 2
    assert one["main_loop"]["mix"]["FFMA"] > 0
    assert one["main_loop"]["instructions"][0]["text"]
    assert one["findings"][0]["figures"]
    assert one["roofline"]["unit"] == "GFLOP/s"
    large, asked = one["predicted"], one["predicted_at_size"]
    assert (large["size"], asked["size"]) == ("4096x4096x4096", "64x96x32")
    assert 0 < asked["time_us"] < large["time_us"] / 100


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_configuration_changes_what_is_seen() -> None:
    small = run("vector_load", "--config", "BM=64", "--config", "BN=64", "--json")
    (one,) = json.loads(small.stdout)["kernels"]
    assert (one["config"]["BM"], one["threads"]) == (64, [64, 1, 1])


@pytest.mark.in_turns(20)
@needs_compiler
def test_two_kernels_stand_side_by_side_and_a_parameter_is_for_whom_has_it() -> None:
    result = run("naive", "vector_load", "--config", "PAD=4", "--sizes", "128")
    assert result.exit_code == 0, result.output
    assert "Findings on naive" in result.stdout
    assert "Findings on vector_load" in result.stdout
    assert [line for line in result.stdout.splitlines() if "predicted for" in line] == [
        f"{name}: predicted for H200 at {size}, not measured"
        for name in ("naive", "vector_load")
        for size in ("4096x4096x4096", "128x128x128")
    ]
    assert "PAD=4" in result.stdout
    (line,) = [line for line in result.stdout.splitlines() if "threads a block" in line]
    assert line.split()[-2:] == ["1024", "256"]


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_loop_is_printed_when_asked_for() -> None:
    assert " FFMA R" not in run("naive", "--sizes", "64").stdout
    assert " FFMA R" in run("naive", "--sizes", "64", "--sass").stdout


@pytest.mark.in_turns(20)
@needs_compiler
def test_an_own_file_comes_through_the_same_door(tmp_path: Path) -> None:
    result = run(write(tmp_path, "__syncwarp();"), *FLAGS, "--json")
    assert result.exit_code == 0, result.output
    (one,) = json.loads(result.stdout)["kernels"]
    assert (one["kernel"], one["hazards"], one["threads"]) == ("mine", [], [32, 1, 1])
    assert "predicted_at_size" not in one
    assert "little work a load" in [finding["key"] for finding in one["findings"]]


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_race_comes_first_and_ends_with_1(tmp_path: Path) -> None:
    result = run(write(tmp_path, ""), *FLAGS, "--sizes", "32")
    assert result.exit_code == 1
    assert "!  race at" in result.stdout
    assert "; the results are right at 32x32x32 all the same. Bound by" in result.stdout
    assert "The results of this run are right all the same" in result.stdout
    assert "cannot be trusted" not in result.stdout
    wrong = write(tmp_path, "")
    Path(wrong).write_text(Path(wrong).read_text().replace("] = sum", "] = -sum"))
    result = run(wrong, *FLAGS, "--sizes", "32")
    assert "; results are wrong at 32x32x32. Bound by" in result.stdout
    assert "Its figures and results cannot be trusted" in result.stdout


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("last", ["C[row * N + col] = 0;", "if (row < 5) C[row * N + col] = sum;"])
def test_a_wrong_result_comes_first_and_nothing_is_predicted(tmp_path: Path, last: str) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(SOURCE.replace("SYNC", "__syncwarp();").replace("C[row * N + col] = sum;", last))
    result = run(str(path), *FLAGS, "--sizes", "32", "--json")
    assert result.exit_code == 1
    (one,) = json.loads(result.stdout)["kernels"]
    assert (one["findings"][0]["key"], one["hazards"]) == ("wrong result", [])
    wrong = 32 * 32 if "= 0" in last else 27 * 32
    assert f"{wrong} of 1024 elements wrong" in one["findings"][0]["text"]
    assert ("no thread wrote c[5.., 0..]" in one["findings"][0]["text"]) == ("= 0" not in last)
    assert one["predicted"] == "its result is wrong at 32x32x32"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a", "b", "c"), "3 kernels"),
        (("nothing",), "nothing"),
        (("packed",), "a kernel for cpu"),
        (("naive", "--arch", "sm_70"), "--arch sm_70"),
        (("naive", "--gpu", "Radeon"), "Radeon"),
        (("naive", "--gpu", "A100", "--arch", "sm_90"), "sm_80"),
        (("naive", "--sizes", "32,64"), "one size"),
        (("naive", "--config", "BM=8", "--config", "BM=16"), "BM is 8 and 16"),
        (("naive", "--config", "STAGES=1"), "STAGES"),
        (("naive", "block_tile", "--config", "XY=1"), "XY"),
        (("naive", "--grid", "1"), "--grid"),
    ],
)
def test_refusals_end_with_2(arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in (str(result.exception) if isinstance(result.exception, GemmlabError) else result.output)


COPY = """
__global__ void copy_words(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
"""


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_verdict_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(SOURCE.replace("SYNC", "__syncthreads();"))
    right = run(str(path), *FLAGS).stdout.splitlines()
    assert right[0] == "mine"
    assert right[1].startswith("  Right at 256x256x256. Bound by ")
    path.write_text(SOURCE.replace("SYNC", ""))
    racing = run(str(path), *FLAGS).stdout.splitlines()
    assert racing[1].startswith("  1 hazard, the first one race at mine.cu:")


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_launch_without_arithmetic_has_no_figures_of_operations(tmp_path: Path) -> None:
    path = tmp_path / "copy.cu"
    path.write_text(COPY)
    result = run(
        str(path), "--kernel", "copy_words", "--grid", "4", "--threads", "256", "--args", "int32[1024],int32[1024],1024"
    )
    assert result.exit_code == 0, result.output
    assert "No hazard in this launch; its results were not compared with anything. Bound by DRAM" in " ".join(
        result.stdout.split()
    )
    assert "FLOP" not in result.stdout
    assert "--sizes" not in result.stdout


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_page_and_the_terminal_name_the_same_architecture(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text('/* gemmlab\narch = "sm_90a"\n*/\n' + SOURCE.replace("SYNC", "__syncthreads();"))
    result = run(str(path), *FLAGS, "--html", str(tmp_path / "page.html"))
    assert "  sm_90a code (" in result.stdout
    assert "(sm_90a)</title>" in (tmp_path / "page.html").read_text()
