"""`gemmlab new`: what it writes works, and nothing is written over unasked."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from gemmlab.cli.app import build_app
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.toolchain.build_cuda import build
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler

OP = GemmOp()
CASES = [
    GemmProblem(*shape, alpha, beta)
    for shape in ((33, 35, 31), (64, 64, 64), (1, 1, 1), (0, 5, 3), (7, 6, 0))
    for alpha, beta in ((1.0, 0.0), (0.5, -1.0), (0.0, 1.0))
] + [GemmProblem(17, 19, 5, lda=6, ldb=21, ldc=22), GemmProblem(20, 40, 9, contents="special")]


def new(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["new", *arguments])


def test_a_file_is_written_and_what_comes_next_is_said(tmp_path: Path) -> None:
    path = tmp_path / "fast_one.cu"
    result = new(str(path))
    assert result.exit_code == 0, result.output
    assert f"gemmlab check {path} --device emulated" in result.stdout
    text = path.read_text(encoding="utf-8")
    assert " fast_one(" in text
    assert "my_kernel" not in text
    assert "printf prints after the kernel" in text
    assert max(len(line) for line in text.splitlines()) <= 120
    kernel = find_kernel(str(path))
    assert (kernel.id, kernel.restrictions) == ("fast_one", ())
    assert len(list(kernel.configurations())) > 1
    assert all(
        any(key in text for key in (f"{word} = ",)) for word in ("grid", "threads", "params", "require", "expect")
    )


def test_nothing_is_written_over_unasked(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text("precious")
    refused = new(str(path))
    assert refused.exit_code == 2
    assert "exists; --force" in refused.stderr
    assert path.read_text() == "precious"
    answer = json.loads(new(str(path), "--force", "--json").stdout)
    assert (answer["file"], answer["kernel"]) == (str(path), "mine")
    assert "__global__" in path.read_text()


@pytest.mark.parametrize(
    "name", ["mine", "mine.c", "1st.cu", "my-kernel.cu", "main.cu", "int.cu", ".cu", "m\u00e4h.cu"]
)
def test_a_name_that_no_kernel_can_have_is_refused(name: str, tmp_path: Path) -> None:
    result = new(str(tmp_path / name))
    assert result.exit_code == 2
    assert "named after the kernel" in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = new(str(tmp_path / "none" / "mine.cu"))
    assert result.exit_code == 2
    assert "no folder" in result.stderr


@pytest.mark.in_turns(20)
@needs_compiler
def test_what_is_written_compiles_and_is_right(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    assert new(str(path)).exit_code == 0
    kernel = find_kernel(str(path))
    for arch in ("sm_80", "sm_89", "sm_90"):
        assert build(kernel.program(kernel.configure(), arch)).resources["spill_stores"] == 0
    device = open_device("emulated")
    report = check_kernel(kernel, device, OP, cases=CASES)
    assert report.passed, report.explain()
    assert report.cases == len(CASES)
    (said,) = kernel.expect
    (problem,) = OP.parse_sizes(said.shape)
    contents = OP.fill(problem, np.random.default_rng(0))
    buffers = {name: device.upload(array.ravel()) for name, array in contents.items()}
    counters = place(kernel, device).bind(OP, problem, buffers).observe().counters
    assert said.verdict(counters, kernel.params, OP.scalars(problem)) == ""
