"""Rates and peaks of the kinds of arithmetic, against data sheets and the programming guide."""

from __future__ import annotations

import pytest

from gemmlab.analysis.arithmetic import BY_NAME, arithmetic_of
from gemmlab.analysis.issue_slots import explain_issue, in_words
from gemmlab.analysis.main_loop import explain_loop
from gemmlab.analysis.model.script import pipe_cycles
from gemmlab.core.counters import SiteCounters
from gemmlab.core.gpu import limits, model
from gemmlab.sass.instruction import SassFunction
from support.sass_corpus import written


@pytest.mark.parametrize(
    ("name", "gpu", "tflops"),
    [
        # A100: 19.5, 78 (halves), 9.7 (double), 156, 312, 624 and 19.5 TFLOP/s; H100's double precision is 67 with
        # tensor cores; L40S: 183 (TF32), 362 and 733; T4: 65 and 130.
        ("FFMA", "A100", 19.5), ("HFMA2", "A100", 78.0), ("DFMA", "A100", 9.7), ("HMMA", "A100", 156.0),
        ("HMMA.16", "A100", 312.0), ("IMMA", "A100", 624.0), ("DMMA", "A100", 19.5), ("DMMA", "H100", 66.9),
        ("HMMA.16", "L40S", 366.0), ("IMMA", "L40S", 733.0), ("HMMA.16", "T4", 65.1), ("IMMA", "T4", 130.2),
    ],
)  # fmt: skip
def test_peaks_are_those_of_the_data_sheets(name: str, gpu: str, tflops: float) -> None:
    peak = BY_NAME[name].peak_gflops(model(gpu))
    assert peak is not None
    assert peak / 1e3 == pytest.approx(tflops, rel=0.01)


def test_what_has_no_rate_says_so() -> None:
    assert BY_NAME["DMMA"].peak_gflops(model("L4")) is None
    assert BY_NAME["HMMA"].peak_gflops(model("T4")) is None


def loop(*lines: str) -> SassFunction:
    return written(f"a: {lines[0]}", *lines[1:], "@P0 BRA `(.L_a)", "EXIT")


@pytest.mark.parametrize(
    ("line", "name", "words"),
    [
        ("HFMA2 R0, R1, R2, R0", "HFMA2", "half-precision peak"),
        ("HMMA.16816.F32 R0, R4, R8, R0", "HMMA.16", "tensor peak"),
        ("HMMA.1688.F32.TF32 R0, R4, R8, R0", "HMMA", "tensor peak"),
        ("IMMA.16832.S8.S8 R0, R4.ROW, R8.COL, R0", "IMMA", "tensor peak"),
        ("DMMA.884 R0, R4, R8, R0", "DMMA", "tensor peak"),
        ("DFMA R0, R2, R4, R0", "DFMA", "double-precision peak"),
    ],
)
def test_the_loop_says_which_arithmetic_it_does(line: str, name: str, words: str) -> None:
    function = loop(line, line)
    sites = [SiteCounters(i.address, i.opcode, executed=8) for i in function.instructions]
    report = explain_loop(function, sites, "sm_80")
    assert report is not None
    assert arithmetic_of(name.partition(".")[0], report.instructions).name == name
    issue = explain_issue(report, limits("sm_80"))
    assert issue is not None
    assert issue.arithmetic == name
    assert f"of {words}" in in_words(issue, report, limits("sm_80"))[0]
    assert 0 < issue.best <= 1


@pytest.mark.parametrize(
    "line",
    [
        "HMMA.1688.F32.TF32 R0, R4, R8, R0", "HMMA.16816.F32 R0, R4, R8, R0", "HMMA.16816.F32.BF16 R0, R4, R8, R0",
        "IMMA.16832.S8.S8 R0, R4.ROW, R8.COL, R0",
    ],
)  # fmt: skip
def test_a_matrix_instruction_occupies_the_tensor_cores_at_the_rate_of_its_type(line: str) -> None:
    # TF32, 16 and 8 bits: half the bits double both the depth and the rate, so each takes 8 cycles on an A100.
    (instruction, *_) = loop(line).instructions
    assert pipe_cycles(instruction, limits("sm_80")) == 8.0
