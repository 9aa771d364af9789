"""The operations under `examples/operations`: each kernel is right, and an error planted in it is rejected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import gemmlab
from gemmlab.cli.app import build_app
from support.cuda_source import needs_compiler
from support.paths import ROOT

FOLDER = ROOT / "examples" / "operations"
ERRORS = {
    "row_sums": ("k < n;", "k < n - 1;"),
    "softmax": ("/ sum", "/ (sum + 1e-3f)"),
    "layer_norm": ("/ n + eps", "/ (n - 1) + eps"),
    "transpose": ("tile[threadIdx.x][threadIdx.y + k];", "tile[threadIdx.y + k][threadIdx.x];"),
    "attention": ("out0 * shrink", "out0"),
}
each = pytest.mark.parametrize("name", ERRORS)


def run(*words: str) -> tuple[int, dict[str, Any]]:
    found = CliRunner().invoke(build_app(), [*words, "--json"])
    return found.exit_code, json.loads(found.stdout)


def check(source: Path, name: str, *more: str) -> tuple[int, dict[str, Any]]:
    return run("check", str(source), "--op", str(FOLDER / f"{name}.py"), "--device", "emulated:sm_80", *more)


def test_every_example_has_an_error() -> None:
    assert {path.stem for path in FOLDER.glob("*.cu")} == {path.stem for path in FOLDER.glob("*.py")} == set(ERRORS)


@pytest.mark.in_turns(20)
@needs_compiler
@each
def test_the_kernel_is_right(name: str) -> None:
    code, answer = check(FOLDER / f"{name}.cu", name)
    assert code == 0, answer


@pytest.mark.in_turns(20)
@needs_compiler
@each
def test_an_error_is_rejected(tmp_path: Path, name: str) -> None:
    text = (FOLDER / f"{name}.cu").read_text(encoding="utf-8")
    before, after = ERRORS[name]
    assert before in text
    wrong = tmp_path / f"{name}.cu"
    wrong.write_text(text.replace(before, after, 1), encoding="utf-8")
    code, answer = check(wrong, name)
    assert (code, [report["right"] for report in answer["reports"]]) == (1, [False]), answer


@pytest.mark.in_turns(20)
@needs_compiler
@each
def test_it_is_explained_and_counted(name: str) -> None:
    kernel, op = str(FOLDER / f"{name}.cu"), ("--op", str(FOLDER / f"{name}.py"))
    code, answer = run("explain", kernel, *op)
    (explained,) = answer["kernels"]
    assert (code, explained["op"].partition(":")[0]) == (0, name)
    code, answer = run("bench", kernel, *op, "--device", "emulated:sm_80")
    assert code == 0, answer


def test_nothing_is_profiled_on_a_processor() -> None:
    for op in (str(FOLDER / "softmax.py"), "gemm"):
        with pytest.raises(gemmlab.UsageError, match="--device cpu: only GPU kernels are profiled"):
            gemmlab.profile(op=op, device="cpu")


def test_a_file_beside_a_kernel_is_not_run(tmp_path: Path) -> None:
    source = tmp_path / "softmax.cu"
    source.write_text((FOLDER / "softmax.cu").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "softmax.py").write_text("raise SystemExit('run')", encoding="utf-8")
    found = CliRunner().invoke(build_app(), ["check", str(source), "--device", "emulated:sm_80"])
    # It is taken for a product, and its arguments do not fit.
    assert found.exit_code == 2
    assert "cannot all be matched by name" in found.output
    assert "something else than gemm needs its operation, in a Python file" in found.output
    assert "gemmlab check softmax.cu --op ./softmax.py" in found.output


@needs_compiler
def test_a_header_with_names_of_another_operation_is_told_how_to_state_it(tmp_path: Path) -> None:
    source = tmp_path / "scale.cu"
    source.write_text(
        '/* gemmlab\ngrid = "ceil_div(n, 256)"\nthreads = "256"\n*/\n'
        "__global__ void scale(int n, float* y, const float* x) { y[0] = n * x[0]; }\n"
    )
    for command in ("check", "explain"):
        found = CliRunner().invoke(build_app(), [command, str(source)])
        assert found.exit_code == 2
        assert "no value named 'n'" in found.output
        assert "something else than gemm needs its operation" in found.output


@pytest.mark.in_turns(20)
@needs_compiler
def test_an_operation_is_an_object_in_python() -> None:
    stated = gemmlab.Operation(
        name="negated", extents=("n",), shapes=((1,), (70,)), reference=lambda x: -x,
        arrays=(gemmlab.Array("x", ("n",)), gemmlab.Array("y", ("n",), role="out")),
    )  # fmt: skip
    source = """
    __global__ void negated(const double* x, double* y, int n) {
        int i = blockIdx.x * 32 + threadIdx.x;
        if (i < n) y[i] = -x[i];
    }
    """
    facts, device = {"grid": "ceil_div(N, 32)", "threads": "32"}, "emulated:sm_80"
    assert gemmlab.check(source, op=stated, facts=facts, device=device).passed
    assert not gemmlab.check(source.replace("-x[i]", "x[i]"), op=stated, facts=facts, device=device).passed
    assert gemmlab.explain(source, op=stated, facts=facts).sound
    assert not gemmlab.bench(source, op=stated, facts=facts, device=device).wrong


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("name", ["softmax", "transpose"])
def test_no_finding_takes_an_operation_for_a_product_a_sum_or_a_division(name: str) -> None:
    code, answer = run("explain", str(FOLDER / f"{name}.cu"), "--op", str(FOLDER / f"{name}.py"))
    assert code == 0, answer
    found = json.dumps(answer)
    assert "narrow global loads" in found
    assert not [key for key in ("beyond the edges", "barriers of a tree", '"division"') if key in found]
