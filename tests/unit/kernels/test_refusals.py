"""What a stranger tried and was let do: BLAS letters as flags, an out that folds, a kernel file that is broken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import gemmlab
import gemmlab.kernels
from gemmlab.core.errors import ArgumentTypeError, CompileError, UsageError
from gemmlab.core.program import Program
from gemmlab.ir.build import build
from gemmlab.ir.target import host_target
from gemmlab.kernels import catalog

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
