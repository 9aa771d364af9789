from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from gemmlab.core.errors import UsageError
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.verify.case_tally import MOST_FAILURES
from gemmlab.verify.check import check_kernel
from gemmlab.verify.check_report import CheckReport, Failure
from support.fake_device import FakeDevice, Gemm, GemmBody, make_kernel, product, right

ALL_LAYOUTS = ("nn", "nt", "tn", "tt")


def judge(body: GemmBody, *cases: GemmProblem) -> CheckReport:
    device = FakeDevice()
    return check_kernel(make_kernel("fake", device, body), device, GemmOp(), cases=cases or None)


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("scale", ["quick", "full"])
def test_a_right_kernel_passes_every_case_in_every_layout(scale: str) -> None:
    device = FakeDevice()
    layouts = ALL_LAYOUTS if scale == "quick" else ("tn",)
    kernel = make_kernel("fake", device, fast, layouts)
    seen: list[tuple[int, int]] = []
    report = check_kernel(kernel, device, GemmOp(), scale=scale, progress=lambda *at: seen.append(at))
    assert report.passed, report.explain()
    assert 0 < report.worst_ratio < 1
    assert report.cases == report.planned == len(seen)
    assert seen[-1] == (report.cases, report.cases)


def fast(call: Gemm) -> None:
    # Rank-1 updates in float32 take long where K does; NumPy's product is as good where all is finite.
    if call.alpha == 0 or not call.k or not (np.isfinite(call.a).all() and np.isfinite(call.b).all()):
        right(call)
        return
    with np.errstate(all="ignore"):
        added = np.zeros_like(call.c) if call.beta == 0 else call.beta * call.c
        call.c[...] = call.alpha * (call.a @ call.b) + added


def corner(call: Gemm) -> None:
    right(call)
    if call.c.size:
        call.c[-1, -1] += np.float32(1e-3)


def behind_the_end(call: Gemm) -> None:
    right(call)
    if call.c.size:
        call.beyond("c", call.flat["c"].size)


def before_the_start(call: Gemm) -> None:
    right(call)
    if call.c.size:
        call.beyond("c", -3)


def into_the_gap(call: Gemm) -> None:
    right(call)
    if call.m > 1 and call.ldc > call.n:
        call.beyond("c", call.n)


def reads_c_at_beta_zero(call: Gemm) -> None:
    with np.errstate(all="ignore"):
        call.c[...] = call.alpha * product(call.a, call.b) + call.beta * call.c


def reads_a_at_alpha_zero(call: Gemm) -> None:
    with np.errstate(all="ignore"):
        added = np.zeros_like(call.c) if call.beta == 0 else call.beta * call.c
        call.c[...] = call.alpha * product(call.a, call.b) + added


def scales_its_input(call: Gemm) -> None:
    call.a[...] *= np.float32(0.5)
    right(call)
    call.c[...] *= np.float32(2)


def skips_one_element(call: Gemm) -> None:
    before = call.c.copy()
    right(call)
    if call.c.size:
        call.c[call.m // 2, call.n // 2] = before[call.m // 2, call.n // 2]


def whole_tiles_only(call: Gemm) -> None:
    before = call.c.copy()
    right(call)
    rows = call.m // 4 * 4
    call.c[rows:] = before[rows:]


def drops_the_last_term(call: Gemm) -> None:
    call.a = call.a[:, :-1] if call.k > 1 else call.a
    call.b = call.b[:-1] if call.k > 1 else call.b
    right(call)


def skips_zeros(call: Gemm) -> None:
    call.a = np.where(call.b.any(axis=1) if call.k else True, call.a, np.float32(0))
    with np.errstate(all="ignore"):
        added = np.zeros_like(call.c) if call.beta == 0 else call.beta * call.c
        total = np.zeros_like(call.c)
        for index in range(call.k):
            total += np.where(call.b[index] == 0, np.float32(0), np.multiply.outer(call.a[:, index], call.b[index]))
        call.c[...] = added if call.alpha == 0 else call.alpha * total + added


def flushes_subnormals(call: Gemm) -> None:
    call.a = np.where(np.abs(call.a) < 2.0**-126, np.float32(0), call.a)
    right(call)


def half_precision(call: Gemm) -> None:
    call.a = call.a.astype(np.float16).astype(np.float32)
    right(call)


def divides_by_alpha(call: Gemm) -> None:
    with np.errstate(all="ignore"):
        added = np.zeros_like(call.c) if call.beta == 0 else call.beta / call.alpha * call.c
        call.c[...] = call.alpha * (product(call.a, call.b) + added)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (corner, "reference"),
        (behind_the_end, "behind its last element"),
        (before_the_start, "3 words before its first element"),
        (into_the_gap, "in the gap behind row 0"),
        (reads_c_at_beta_zero, "= nan"),
        (reads_a_at_alpha_zero, "= nan"),
        (scales_its_input, "an input"),
        (skips_one_element, "= nan"),
        (whole_tiles_only, "= nan"),
        (drops_the_last_term, "elements wrong"),
        (skips_zeros, "reference nan"),
        (flushes_subnormals, "subnormal"),
        (half_precision, "elements wrong"),
        (divides_by_alpha, "= nan"),
    ],
)
def test_every_kind_of_broken_kernel_is_caught_by_the_default_cases(body: GemmBody, said: str) -> None:
    report = judge(body)
    assert not report.passed
    assert said in report.explain()
    assert "fake" in report.explain()


def test_a_failure_names_kernel_configuration_problem_and_the_first_wrong_element() -> None:
    def body(call: Gemm) -> None:
        right(call)
        call.c[40, 37] = np.float32(5)
        call.c[41, 5] = np.float32(-5)

    report = judge(body, GemmProblem(64, 64, 8))
    (failure,) = report.failures
    (mismatch,) = failure.mismatches
    assert (mismatch.row, mismatch.column, mismatch.value) == (40, 37, 5.0)
    assert abs(mismatch.reference) < 5
    assert 0 < mismatch.tolerance < 1e-4
    assert (mismatch.wrong, mismatch.elements, mismatch.wrong_tiles) == (2, 4096, 2)
    assert {(tile.row, tile.column, tile.wrong) for tile in mismatch.worst_tiles} == {(32, 0, 1), (32, 32, 1)}
    text = failure.explain()
    for part in ("fake (TILE=4)", "64x64x8", "c[40, 37] = 5", "2 of 4096 elements wrong"):
        assert part in text


def test_only_a_wrong_element_makes_a_result_wrong() -> None:
    failure = Failure("fake", {}, 1, "3x5x2", {}, notes=("out of bounds at fake.cu:3",))
    assert failure.explain() == "fake fails at 3x5x2\n  out of bounds at fake.cu:3"
    assert replace(failure, threads=4).explain().startswith("fake (threads=4) fails at 3x5x2")
    (changed,) = judge(behind_the_end, GemmProblem(3, 5, 2, ldc=9)).failures
    assert "(TILE=4) fails at 3x5x2" in changed.explain()


@pytest.mark.in_turns(20)
def test_checking_stops_after_a_few_failures_and_says_so() -> None:
    report = judge(corner)
    assert len(report.failures) == MOST_FAILURES
    assert report.cases < report.planned
    assert f"stopped there; {report.planned} planned" in report.explain()


def test_a_violation_tells_where_and_what() -> None:
    report = judge(behind_the_end, GemmProblem(3, 5, 2, ldc=9))
    (violation,) = report.failures[0].violations
    assert (violation.operand, violation.place, violation.offset, violation.words) == ("c", "after", 2 * 9 + 5, 1)
    assert "now 7 (0x40E00000)" in violation.explain()


def test_the_report_is_json_even_where_numbers_are_not_finite() -> None:
    report = judge(skips_one_element, GemmProblem(4, 4, 4, alpha=float("nan"), beta=1.0), GemmProblem(4, 4, 4))
    data = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert data["passed"] is False
    assert data["failures"][-1]["mismatches"][0]["value"] == "nan"


def test_an_unknown_parameter_is_refused() -> None:
    device = FakeDevice()
    with pytest.raises(UsageError, match="MR"):
        check_kernel(make_kernel("fake", device, right), device, GemmOp(), config={"MR": 4})


def test_the_same_seed_gives_the_same_data() -> None:
    def digest(seed: int) -> list[bytes]:
        device, seen = FakeDevice(), list[bytes]()

        def body(call: Gemm) -> None:
            seen.append(call.a.tobytes())
            right(call)

        check_kernel(make_kernel("f", device, body), device, GemmOp(), cases=[GemmProblem(3, 4, 5)] * 2, seed=seed)
        return seen

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)
    assert digest(1)[0] != digest(1)[1]
