"""`gemmlab explain --pictures`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from support.cuda_source import needs_compiler


def explain(*arguments: str) -> Any:
    return CliRunner().invoke(build_app(), ["explain", *arguments])


OWN = """
__global__ void product(int M, int N, int K, const float *A, const float *B, float *C) {
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y;
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
"""


@pytest.mark.in_turns(20)
@needs_compiler
def test_explain_draws_pictures_of_an_own_file(tmp_path: Path) -> None:
    source, folder = tmp_path / "mine.cu", tmp_path / "new" / "pictures"
    source.write_text(OWN)
    flags = ("--grid", "ceil_div(N, 32), M", "--threads", "32", "--sizes", "64x64x16")
    result = explain(str(source), *flags, "--pictures", str(folder), "--picture", "lane_map", "--format", "svg",
                     "--format", "png", "--picture", "transactions")  # fmt: skip
    assert result.exit_code == 0, result.output
    files = ["lane_map.png", "lane_map.svg", "transactions.png", "transactions.svg"]
    assert sorted(path.name for path in folder.iterdir()) == files
    assert all(str(folder / name) in result.stdout for name in files)
    assert "<svg" in (folder / "lane_map.svg").read_text()
    assert "Findings" in result.stdout


def test_pictures_of_a_cpu_kernel_are_all_there_is(tmp_path: Path) -> None:
    result = explain("naive_ijk", "--pictures", str(tmp_path), "--json")
    assert result.exit_code == 0, result.output
    (one,) = json.loads(result.stdout)["kernels"]
    assert one["kernel"] == "naive_ijk"
    assert {Path(file) for picture in one["pictures"] for file in picture["files"]} == set(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["naive", "--picture", "lane_map"], "name a folder with --pictures"),
        (["naive", "--format", "svg"], "name a folder with --pictures"),
        (["naive", "block_tile", "--pictures", "DIR"], "name one kernel"),
        (["naive", "--pictures", "DIR", "--format", "gif"], "one of svg, png, html"),
        (["naive", "--pictures", "DIR", "--picture", "lane_mop"], "did you mean lane_map"),
        (["naive", "--pictures", "DIR/file/below"], "cannot make the folder"),
    ],
)
def test_what_makes_no_sense_is_told_before_anything_runs(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "file").write_text("")
    result = explain(*(part.replace("DIR", str(tmp_path)) for part in arguments))
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
