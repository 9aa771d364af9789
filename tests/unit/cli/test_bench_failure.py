"""`gemmlab bench` of a wrong kernel on the emulator: why it failed is said once."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.core.errors import WrongResultError
from support.cuda_source import needs_compiler
from support.racing_kernel import RACE


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_failure_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "race.cu"
    path.write_text(RACE.replace("__syncthreads();  // SECOND", ""), encoding="utf-8")
    asked = ["bench", str(path), "--device", "emulated", "--sizes", "64"]
    done = CliRunner().invoke(build_app(), asked)
    error = str(done.exception) if isinstance(done.exception, WrongResultError) else done.stderr
    assert (done.exit_code, "put __syncthreads()" in " ".join(done.stdout.split())) == (1, True)
    assert "failed: race at 64x64x64" in error
    assert "__syncthreads" not in error
    done = CliRunner().invoke(build_app(), [*asked, "--json"])
    error = str(done.exception) if isinstance(done.exception, WrongResultError) else done.stderr
    assert "race at 64x64x64: " in error
    assert "put __syncthreads()" in error
