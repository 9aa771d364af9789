"""One plain verdict on each kind of mistake, for kernels of Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gemmlab.core.expr import parse
from gemmlab.kernels.claims import Restriction
from gemmlab.ops.gemm import GemmOp
from gemmlab.verify.check import check_kernel
from gemmlab.verify.check_report import CheckReport
from support.fake_device import FakeDevice, Gemm, make_kernel, right

OP = GemmOp()
Wrong = Callable[[Gemm], bool]


def judge(wrong: Wrong, layouts: tuple[str, ...] = ("nn",), needed: tuple[str, ...] = ()) -> CheckReport:
    def body(call: Gemm) -> None:
        right(call)
        if call.c.size and wrong(call):
            call.c[0, 0] = np.float32(12345)

    device = FakeDevice()
    kernel = replace(
        make_kernel("fake", device, body, layouts), restrictions=tuple(Restriction(parse(text)) for text in needed)
    )
    return check_kernel(kernel, device, OP)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    ("wrong", "verdict"),
    [
        (lambda _: True, "WRONG EVERYWHERE: at whole tiles, too"),
        (lambda call: call.k % 16 != 0, "WRONG AT EDGES: passes where K % 16 == 0"),
        (lambda call: call.m % 4 or call.n % 8, "WRONG AT EDGES: passes where M % 4 == 0 and N % 8 == 0"),
        (lambda call: call.k % 24 != 0, "WRONG AT EDGES: passes where K % 24 == 0"),
        (lambda call: call.k % 4 in (1, 2), "WRONG AT EDGES: passes where K % 4 is 0 or 3"),
        (lambda call: call.ldc % 4 != 0, "WRONG AT UNALIGNED ROWS: passes where ldc % 4 == 0"),
        (lambda call: call.ldc != call.n, "WRONG: passes where ldc is the length of a row"),
        (lambda call: call.n % 2 or call.ldc % 8, "WRONG AT EDGES: passes where N % 2 == 0 and ldc % 8 == 0"),
        (lambda call: call.k < 21, "WRONG: passes where K >= 21"),
        (lambda call: call.k % 2 or call.k < 30, "WRONG: passes where K % 2 == 0 and K >= 30"),
        (lambda call: call.beta != 0, "WRONG: passes where beta == 0"),
        (lambda call: call.alpha == 0, "WRONG: passes where alpha != 0"),
        (lambda call: call.m == 3 and call.n == 3, "WRONG: "),
        (lambda call: call.k % 3 == 1, "WRONG AT EDGES: fails where K % 3 == 1"),
        (lambda call: call.m % 8 == 3, "WRONG AT EDGES: fails where M % 8 == 3"),
        (lambda call: call.n % 16 in (3, 6), "WRONG AT EDGES: fails where N % 16 is 3 or 6"),
        (lambda call: call.k % 24 == 0, "WRONG: fails where K % 24 == 0"),
        (lambda call: call.k % 8 == 0, "WRONG: fails where K % 8 == 0"),
        (lambda call: call.k > 40, "WRONG: passes where K <= 40"),
        (lambda call: call.m > 40 and call.n > 40, "WRONG: passes where M <= 40 or N <= 40"),
        (lambda call: call.m % 4 and call.k % 4, "WRONG AT EDGES: passes where M % 4 == 0 or K % 4 == 0"),
        (lambda call: call.n % 8 and call.beta != 0, "WRONG: passes where N % 8 == 0 or beta == 0"),
        (lambda call: call.k < 30 and call.n % 2, "WRONG: passes where N % 2 == 0 or K >= 30"),
        # Three of which one suffices are no two; and two must hold wherever the kernel passes.
        (lambda call: call.m % 4 and call.n % 4 and call.k % 4, "WRONG: "),
        (lambda call: call.m % 4 and call.k % 4 and call.n < 90, "WRONG: "),
    ],
)
def test_a_wrong_kernel_is_judged_by_what_it_needs(wrong: Wrong, verdict: str) -> None:
    report = judge(wrong)
    assert str(report.verdict).startswith(verdict)
    assert report.explain().startswith(f"fake: {verdict}")
    assert report.to_json()["verdict"]["kind"] == report.verdict.kind


@pytest.mark.in_turns(20)
def test_no_condition_is_named_that_a_problem_outside_the_cases_contradicts() -> None:
    """This kernel passes in all cases with K >= 2, and fails at K = 193, which is none of them."""
    assert "where" not in str(judge(lambda call: call.k in (1, 193)).verdict)


@pytest.mark.in_turns(20)
def test_a_condition_is_tried_in_all_layouts() -> None:
    """The first eight failures end the cases before a transposed operand is read."""
    text = str(judge(lambda call: bool(call.n % 4 or (call.b.strides[1] > 4 and call.k % 4)), ("nn", "nt")).verdict)
    assert "where" not in text


@pytest.mark.in_turns(20)
def test_a_condition_is_found_for_a_kernel_that_reads_one_layout_alone() -> None:
    text = str(judge(lambda call: call.k % 16 != 0, ("nt",), ("TRANS_B == 1",)).verdict)
    assert text.startswith("WRONG AT EDGES: passes where K % 16 == 0")


@pytest.mark.in_turns(20)
def test_a_condition_is_found_for_a_kernel_without_factors_that_takes_whole_tiles() -> None:
    needed = (*(f"{name} % 64 == 0" for name in "MNK"), "alpha == 1", "beta == 0")
    text = str(judge(lambda call: call.k % 128 != 0, needed=needed).verdict)
    assert text.startswith("WRONG AT EDGES: passes where K % 128 == 0")


@pytest.mark.in_turns(20)
def test_what_a_kernel_requires_is_no_condition_that_it_is_found_to_need() -> None:
    text = str(judge(lambda call: call.k % 16 != 0, needed=("ldb % 4 == 0",)).verdict)
    assert text.startswith("WRONG AT EDGES: passes where K % 16 == 0")
    assert "ldb" not in text


@pytest.mark.in_turns(20)
def test_an_extent_is_not_blamed_for_rows_that_are_as_long() -> None:
    """Without gaps lda is K; rows of C cannot lie apart here, those of A can."""
    text = str(judge(lambda call: call.a.strides[0] % 16 != 0, needed=("ldc == N",)).verdict)
    assert text.startswith("WRONG AT UNALIGNED ROWS: passes where lda % 4 == 0")


def test_a_right_kernel_passes() -> None:
    assert str(judge(lambda _: False).verdict) == "PASS"
