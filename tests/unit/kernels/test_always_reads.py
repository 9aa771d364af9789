"""Kernels that read an operand even if the factor before it is 0, through every verb; padding of rows in a check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gemmlab.analysis.model.quoted_prediction import modelled, quote
from gemmlab.analysis.subject import machine
from gemmlab.cli.app import build_app
from gemmlab.core.errors import UsageError
from gemmlab.devices.select import open_device
from gemmlab.kernels.cuda_kernel import shipped_kernel
from gemmlab.kernels.fitting import factor_notes, same_for_all, with_factors
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler
from support.paths import DATA

OP = GemmOp()
FILE = DATA / "user_kernels" / "always_reads.cu"
NOTES = [
    "reads A and B when alpha is 0, so alpha is 1 where it would be 0",
    "reads C when beta is 0, so beta is 1 where it would be 0",
]
ADDS = DATA / "user_kernels" / "adds_to_c.cu"
ADDED = "always reads C and takes no beta but 1, so beta is 1"
STRIDED = """/* gemmlab
grid = "N // 32, M // 32"
threads = "32, 32"
require = ["M % 32 == 0", "N % 32 == 0"]
*/
__global__ void strided(int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta,
                        float* C, int ldc) {
    const long long row = blockIdx.y * 32 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    if (alpha != 0.0f)
        for (long long k = 0; k < K; ++k) sum += A[row * lda + k] * B[k * ldb + col];
    const float product = alpha != 0.0f ? alpha * sum : 0.0f;
    C[row * ldc + col] = beta != 0.0f ? product + beta * C[row * ldc + col] : product;
}
"""


def run(*arguments: str) -> Any:
    return CliRunner().invoke(build_app(), list(arguments))


def test_a_factor_before_what_is_always_read_is_not_0() -> None:
    kernel = user_kernel(FILE)
    assert (kernel.always_reads, factor_notes(kernel, OP)) == (("a", "b", "c"), NOTES)
    assert with_factors(kernel, OP, GemmProblem(4, 5, 6, 0.0, 0.0)) == GemmProblem(4, 5, 6, 1.0, 1.0)
    assert with_factors(kernel, OP, GemmProblem(4, 5, 6, 0.5, -2.0)) == GemmProblem(4, 5, 6, 0.5, -2.0)
    assert kernel.refusal({}, OP.scalars(GemmProblem(4, 5, 6, 1.0, 0.0))) == "beta != 0 (reads C when beta is 0)"


def test_contestants_that_are_compared_get_the_same_problems() -> None:
    problems, notes = same_for_all([user_kernel(FILE)], OP, OP.parse_sizes("8,9"))
    assert problems == [GemmProblem(8, 8, 8, beta=1.0), GemmProblem(9, 9, 9, beta=1.0)]
    assert notes == [f"always_reads {note}, for all contestants" for note in NOTES]
    assert same_for_all([], OP, OP.parse_sizes("8")) == (OP.parse_sizes("8"), [])


@pytest.mark.parametrize(("key", "words"), [('["D"]', "'d' is no operand of gemm"), ("3", "not a list of texts")])
def test_the_key_names_operands_with_a_factor(tmp_path: Path, key: str, words: str) -> None:
    file = tmp_path / "mine.cu"
    file.write_text(FILE.read_text().replace('["A", "B", "C"]', key).replace("void always_reads", "void mine"))
    with pytest.raises(UsageError, match=rf"mine.cu:4: always_reads: .*{words}"):
        user_kernel(file)


def test_a_rung_may_not_have_it(tmp_path: Path) -> None:
    folder = tmp_path / "gemm_cuda"
    folder.mkdir()
    facts = 'summary = "s"\nidea = "i"\nsource = "x"\nop = "gemm"\ngrid'
    (folder / "always_reads.cu").write_text(FILE.read_text().replace("grid", facts, 1))
    with pytest.raises(UsageError, match="always_reads: a rung must keep the contract"):
        shipped_kernel(folder / "always_reads.cu")


@pytest.mark.in_turns(20)
@needs_compiler
def test_check_tries_every_case_and_says_the_trait() -> None:
    report = check_kernel(user_kernel(FILE), open_device("emulated"), OP)
    assert report.passed, report.explain()
    assert report.traits == tuple(NOTES)
    assert not any("beta" in reason for reason in report.refused)
    assert f"it {NOTES[1]}" in report.explain()


@pytest.mark.in_turns(20)
@needs_compiler
def test_without_the_key_the_failure_names_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.cu"
    file.write_text(FILE.read_text().replace("always_reads =", "#").replace("void always_reads", "void mine"))
    report = check_kernel(user_kernel(file), open_device("emulated"), OP, cases=[GemmProblem(4, 4, 4)])
    assert 'if it is meant to read it, state always_reads = ["C"]' in report.explain()


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(("factors", "label"), [((), "16x16x16 beta=1"), (("--beta", "2"), "16x16x16 beta=2"),
                                                (("--alpha", "0.5"), "16x16x16 alpha=0.5 beta=1")])  # fmt: skip
def test_bench_counts_it_and_names_the_factors(factors: tuple[str, ...], label: str) -> None:
    result = run("bench", str(FILE), "--device", "emulated", "--sizes", "16", "--json", *factors)
    (found,) = json.loads(result.stdout)["record"]["results"]
    assert (found["label"], found["verified"]) == (label, True)
    assert f"it {NOTES[1]}" in found["notes"]


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("verb", ["bench", "profile"])
def test_all_contestants_are_counted_with_the_same_factors(verb: str) -> None:
    result = run(verb, str(FILE), "naive", "--device", "emulated", "--sizes", "16")
    text = " ".join(result.stdout.split())
    assert "naive 16x16x16 beta=1" in text or "naive at 16x16x16 beta=1" in text
    assert f"always_reads {NOTES[1]}, for all contestants" in text


@needs_compiler
def test_a_count_without_verification_says_so() -> None:
    result = run("bench", "naive", "--device", "emulated", "--sizes", "16", "--no-verify")
    assert (result.exit_code, "not verified" in result.stdout) == (0, True)
    result = run("bench", "reduce_peak", "--device", "emulated", "--sizes", "16", "--beta", "1")
    assert (result.exit_code, "the operation reduce has no beta" in result.output) == (2, True)


@pytest.mark.in_turns(20)
@needs_compiler
def test_profile_explain_and_the_prediction_take_it() -> None:
    result = run("profile", str(FILE), "--device", "emulated", "--sizes", "32")
    assert (result.exit_code, NOTES[1] in " ".join(result.stdout.split())) == (0, True)
    result = run("explain", str(FILE), "--sizes", "32", "--json")
    (explained,) = json.loads(result.stdout)["kernels"]
    assert (result.exit_code, explained["traits"], explained["size"]) == (0, NOTES, "32x32x32 beta=1")
    arch, gpu = machine("sm_90")
    kernel = user_kernel(FILE)
    assert quote(modelled(kernel, arch, gpu, {}), kernel, {}).size == "4096x4096x4096 beta=1"


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(("planted", "right"), [("", True), ("B[k * ldb", False), ("C[row * ldc", False)])
def test_rows_keep_their_padding_when_extents_are_rounded(tmp_path: Path, planted: str, right: bool) -> None:
    file = tmp_path / "strided.cu"
    wrong = planted.replace("ldb", "N").replace("ldc", "N")
    file.write_text(STRIDED.replace(planted, wrong) if planted else STRIDED)
    report = check_kernel(user_kernel(file), open_device("emulated"), OP)
    assert report.passed == right
    assert report.padded >= 8


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_without_beta_that_adds_to_c_is_judged_by_every_verb() -> None:
    kernel = user_kernel(ADDS)
    assert factor_notes(kernel, OP) == [ADDED]
    why = "beta == 1 (its signature has no beta, and it always reads C)"
    assert kernel.refusal(kernel.params, OP.scalars(GemmProblem(4, 4, 4, beta=0.5))) == why
    report = check_kernel(kernel, open_device("emulated"), OP)
    assert (report.passed, report.traits) == (True, (ADDED,)), report.explain()
    assert report.cases > 100
    for verb in ("explain", "profile", "bench"):
        where = () if verb == "explain" else ("--device", "emulated")
        result = run(verb, str(ADDS), "--sizes", "32", *where)
        assert (result.exit_code, ADDED in " ".join(result.stdout.split())) == (0, True), result.output


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_without_beta_that_adds_to_c_is_told_the_key(tmp_path: Path) -> None:
    file = tmp_path / "adds_to_c.cu"
    file.write_text(ADDS.read_text().replace("always_reads", "# "))
    report = check_kernel(user_kernel(file), open_device("emulated"), OP)
    assert 'state always_reads = ["C"]' in report.explain()
    assert "c held NaN before the call, because nothing is added to it" in str(report.verdict)


@pytest.mark.in_turns(20)
@needs_compiler
def test_tune_and_sass_say_the_trait(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GEMMLAB_DATA_DIR", str(tmp_path / "data"))
    result = run("tune", str(ADDS), "--device", "emulated", "--sizes", "64", "--budget", "60s")
    assert (result.exit_code, f"  it {ADDED}\n" in result.stdout) == (0, True), result.output
    for more in ((), ("--counts", "--sizes", "32")):
        result = run("sass", str(ADDS), *more)
        assert (result.exit_code, f"  it {ADDED}\n" in result.stdout) == (0, True), result.output
        assert "No pictures" not in result.stdout
