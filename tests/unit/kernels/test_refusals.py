"""What a stranger tried and was let do: BLAS letters as flags, an out that folds, a kernel file that is broken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from typer.testing import CliRunner

import gemmlab
import gemmlab.kernels
from gemmlab.cli.app import build_app
from gemmlab.core.errors import ArgumentTypeError, CompileError, UsageError
from gemmlab.core.program import Program
from gemmlab.ir.build import build
from gemmlab.ir.target import host_target
from gemmlab.kernels import catalog
from gemmlab.ops.catalog import find_op

SQUARE = np.eye(3, dtype=np.float32)


@pytest.mark.parametrize("flag", ["n", "T", 2, None])
def test_a_flag_that_is_no_flag_is_refused(flag: object) -> None:
    with pytest.raises(ArgumentTypeError, match="trans_b"):
        gemmlab.gemm(SQUARE, SQUARE, trans_b=flag)  # type: ignore[arg-type]


def test_an_out_whose_rows_are_one_row_is_refused() -> None:
    folded = as_strided(np.zeros(3, np.float32), (3, 3), (0, 4))
    with pytest.raises(UsageError, match="share memory with each other"):
        gemmlab.gemm(SQUARE, SQUARE, out=folded)
    unfolded = np.zeros((6, 6), np.float32)[::-2, ::2]
    assert gemmlab.gemm(SQUARE, SQUARE, out=unfolded) is unfolded


@pytest.mark.parametrize("text", ["x = (", "KERNEL = 3"])
def test_a_broken_kernel_file_is_named(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "broken_cpu"
    folder.mkdir()
    file = folder / "mine.py"
    file.write_text(text)
    monkeypatch.setattr(gemmlab.kernels, "__path__", [str(tmp_path)])
    with pytest.raises(UsageError, match=r"mine\.py"):
        catalog._kernel_in(file)


def test_an_error_while_a_kernel_emits_names_the_kernel() -> None:
    def emit() -> str:
        raise AttributeError("no attribute 'rnge'")

    target = host_target()
    program = Program("mine", "llvm", target.name, "mine", "only-here", emit)
    with pytest.raises(CompileError, match=r"mine .*rnge"):
        build(program, target)


@pytest.mark.parametrize("verb", ["check", "bench", "explain", "profile"])
def test_a_layout_that_the_kernel_does_not_read_is_refused(verb: str) -> None:
    device = ["--arch", "sm_90a"] if verb == "explain" else ["--device", "emulated:sm_90a"]
    result = CliRunner().invoke(build_app(), [verb, "tf32_split_k", *device, "--sizes", "128x128x512:tn"])
    assert result.exit_code == 2, result.output
    assert "layout nn or nt or tt (it does not read layout tn)" in " ".join(result.output.split())


def test_other_sizes_remain_beside_a_layout_that_the_kernel_does_not_read() -> None:
    right, refused = gemmlab.bench("naive", device="emulated", sizes="8,8:tn").counts
    assert (right.verified, refused.verified) == (True, None)
    report = gemmlab.check("naive", device="emulated", sizes="8,8:tn").reports[0]
    assert (report.cases, dict(report.refused)) == (1, {"layout nn (it does not read layout tn)": 1})


@pytest.mark.parametrize("name", ["batch", "group"])
def test_a_batch_and_a_group_of_a_layout_that_the_kernel_does_not_read_are_refused(name: str) -> None:
    op = find_op(name)
    kernel = replace(catalog.find_kernel("batched"), op=name, layouts=("nn", "nt"), restrictions=())
    (stated,) = op.parse_sizes("2*8")
    read, unread = op.in_layouts(stated, ["nt", "tn"])
    assert kernel.refusal(kernel.configure(), op.scalars(read)) == ""
    assert "does not read layout tn" in kernel.refusal(kernel.configure(), op.scalars(unread))
