"""`%%cuda` in IPython's own shell: compiled, checked, counted, explained; messages with the cell's lines."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.notebook.cell_options import completions, parse
from gemmlab.notebook.cell_result import CellResult
from support.cuda_source import needs_compiler

pytest.importorskip("IPython")

from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

PRODUCT = """__global__ void mine(
    int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  if (row < M && col < N) {
    float sum = 0.0f;
    if (alpha != 0.0f) for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = alpha * sum + (beta == 0.0f ? 0.0f : beta * C[row * N + col]);
  }
}
"""
HEADER = """/* gemmlab
grid = "ceil_div(N, 16), ceil_div(M, 16)"
threads = "16, 16"
*/
"""
OPTIONS = '--grid "ceil_div(N, 16), ceil_div(M, 16)" --threads "16, 16"'
DOUBLE = """__global__ void twice(float *a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] *= 2;
}
"""


class Shell:
    """A shell with the extension, and the value of its last cell."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell: Any = shell
        self.run("%load_ext gemmlab")

    def run(self, cell: str) -> Any:
        found = self.shell.run_cell(cell)
        if found.error_in_exec is not None:
            raise found.error_in_exec
        return found.result


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        InteractiveShell.clear_instance()
        found: Any = InteractiveShell.instance()
        found.history_manager.enabled = False
        yield Shell(found)
        InteractiveShell.clear_instance()


def message(shell: Shell, cell: str) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the shell's own error
        shell.run(cell)
    assert type(caught.value).__name__ == "UsageError"
    return str(caught.value)


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("cell", [f"\n{HEADER}{PRODUCT}", f" {OPTIONS}\n{PRODUCT}"], ids=["header", "options"])
def test_a_product_is_checked_and_explained(cell: str, shell: Shell) -> None:
    found = shell.run(f"%%cuda --size 33,5{cell}")
    assert isinstance(found, CellResult)
    assert found.check is not None
    assert found.check.passed
    assert found.check.reports[0].cases == 2
    assert found.explanation is not None
    assert found.explanation.rows()[0]["kernel"] == "mine"
    assert found.explanation.rows()[0]["size"] == "33x33x33"
    assert len(repr(found)) < 300
    assert "PASS" in found._repr_html_()


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_compilers_errors_have_the_lines_of_the_cell(shell: Shell) -> None:
    cell = f"%%cuda\n{HEADER}{PRODUCT.replace('float sum', 'flaot sum')}"
    line = next(number for number, text in enumerate(cell.splitlines(), 1) if "flaot" in text)
    text = message(shell, cell)
    assert f'cell:{line}: error: identifier "flaot" is undefined' in text
    assert str(Path(tempfile.gettempdir())) not in text
    # The same where nothing is launched.
    assert "cell:3: error" in message(shell, f"%%cuda\n{DOUBLE.replace('int i', 'itn i')}")


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_hazard_has_the_line_of_the_cell(shell: Shell) -> None:
    cell = f"%%cuda --size 17 --no-check\n{HEADER}{PRODUCT.replace('if (row < M && col < N) {', '{')}"
    line = next(number for number, text in enumerate(cell.splitlines(), 1) if "sum += A" in text)
    found = shell.run(cell)
    assert not found.explanation.sound
    assert f"mine.cu:{line}" in found._repr_html_()


@pytest.mark.in_turns(20)
@needs_compiler
def test_any_kernel_is_launched_with_arrays(shell: Shell) -> None:
    found = shell.run(f'%%cuda --grid 4 --threads 64 --args "float32[256], 256"\n{DOUBLE}')
    assert found.launched.hazards == ()
    assert found.explanation.rows()[0]["kernel"] == "twice"
    shell.shell.user_ns["x"] = np.arange(256, dtype=np.float32)
    found = shell.run(f'%%cuda --launch --grid 4 --threads 64 --args "x, 200"\n{DOUBLE}')
    expected = np.arange(256, dtype=np.float32)
    expected[:200] *= 2
    assert (found.launched.outputs[0] == expected).all()
    assert (shell.shell.user_ns["x"] == np.arange(256)).all()


@pytest.mark.in_turns(20)
@needs_compiler
def test_another_cell_is_compiled_and_says_how_to_launch(shell: Shell) -> None:
    found = shell.run(f"%%cuda --arch sm_80\n{DOUBLE}")
    assert [artifact.target for artifact in found.artifacts] == ["sm_80"]
    assert found.artifacts[0].resources["registers"] > 0
    assert "--grid 4 --threads 64" in found.note
    assert "registers" in found._repr_html_()


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%%cuda --nosuch\nint a;", "unrecognized arguments: --nosuch"),
        ("%%cuda --size '3\nint a;", "No closing quotation"),
        ("%%cuda\nint a;", "no kernel to compile"),
        (f"%%cuda --device nowhere\n{DOUBLE}", "no device named 'nowhere'"),
        (f"%%cuda --grid 4 --threads 4 --args 'float32[3], y'\n{DOUBLE}", "'y' is no number"),
        ("%%cuda --launch --grid 4 --threads 4\nint a;", "name one of the kernels with --kernel: there is none"),
    ],
)
@needs_compiler
def test_bad_cells(cell: str, said: str, shell: Shell) -> None:
    assert said in message(shell, cell)


def test_help_lists_every_option(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run("%%cuda -h\n ") is None
    text = capsys.readouterr().out
    for name in ("--size", "--device", "--arch", "--args", "--no-check"):
        assert name in text


@pytest.mark.in_turns(20)
def test_options_are_completed(shell: Shell) -> None:
    assert completions("--ar") == ["--arch", "--args"]
    assert "--timeout" in completions("--")
    line = "%%cuda --ar"
    with provisionalcompleter():
        found = {one.text for one in shell.shell.Completer.completions(line, len(line))}
    assert {"--arch", "--args"} <= found


def test_an_option_is_given_whole() -> None:
    assert parse("--size 3").sizes == parse("--sizes 3").sizes == "3"
    with pytest.raises(gemmlab.UsageError, match="unrecognized"):
        parse("--siz 3")


@pytest.mark.in_turns(20)
def test_without_the_extension_ipython_is_not_imported() -> None:
    code = "import sys, gemmlab.notebook.cuda_cell, gemmlab.instruments.benching; assert 'IPython' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
