"""The bound for inputs rounded to TF32: what rounds is right, what cuts off is not, and neither passes for float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from gemmlab.core.precision import FLOAT32, TF32, TF32_OVERFLOW
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.verify.check import check_kernel
from gemmlab.verify.check_report import CheckReport
from support.fake_device import FakeDevice, Gemm, make_kernel, right

OP = GemmOp()
Words = npt.NDArray[np.float32]


def rounded(values: Words) -> Words:
    """As cvt.rna.tf32.f32 does it: half a unit is added to the magnitude, what lies below a unit is cut off."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    more = np.where(np.isfinite(values), bits + np.uint32(0x1000), bits)
    return (more & np.uint32(0xFFFFE000)).view(np.float32)


def cut(values: Words) -> Words:
    return (np.ascontiguousarray(values).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def computing_with(convert: Callable[[Words], Words]) -> Callable[[Gemm], None]:
    def body(call: Gemm) -> None:
        call.a, call.b = convert(call.a), convert(call.b)
        right(call)

    return body


def judge(convert: Callable[[Words], Words], precision: str, *cases: GemmProblem) -> CheckReport:
    device = FakeDevice()
    kernel = replace(make_kernel("fake", device, computing_with(convert)), precision=precision)
    return check_kernel(kernel, device, OP, cases=cases or None)


@pytest.mark.in_turns(20)
def test_rounded_inputs_pass_every_case() -> None:
    report = judge(rounded, TF32)
    assert report.passed, report.explain()
    assert 0.3 < report.worst_ratio < 1
    assert not report.source_passed


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(("convert", "precision"), [(cut, TF32), (rounded, FLOAT32)])
def test_inputs_cut_off_or_passed_for_float32_are_caught(convert: Callable[[Words], Words], precision: str) -> None:
    report = judge(convert, precision)
    assert not report.passed
    assert "elements wrong" in report.explain()


def bound(precision: str, a: object, b: object, **problem: float) -> float:
    left, right_ = (np.array([x], np.float32) for x in (a, b))
    p = GemmProblem(1, 1, left.size, **problem)  # type: ignore[arg-type]
    inputs = {"a": left.reshape(1, -1), "b": right_.reshape(-1, 1), "c": np.zeros((1, 1), np.float32)}
    return float(OP.reference(p, inputs, precision=precision)["c"].bound[0, 0])


def test_the_bound_is_the_one_that_is_documented() -> None:
    u = 2.0**-11
    for a, b in ((1.5, -3.0), (2.0**-100, 2.0**90)):
        more = bound(TF32, a, b) - bound(FLOAT32, a, b)
        assert more == pytest.approx(abs(a * b) * ((1 + u) ** 2 - 1), rel=1e-3)
    assert bound(TF32, 3.0, 1.0, alpha=-2.0) == pytest.approx(2 * bound(TF32, 3.0, 1.0), rel=1e-3)
    # A subnormal number keeps fewer bits.
    assert bound(TF32, 2.0**-130, 2.0**100) > 2.0**-137 * 2.0**100


def test_what_may_round_to_infinity_has_no_bound() -> None:
    largest = np.float32(TF32_OVERFLOW)
    assert bound(TF32, largest, 2.0**-20) == np.inf
    assert bound(FLOAT32, largest, 2.0**-20) < np.inf
    assert bound(TF32, np.nextafter(largest, np.float32(0)), 2.0**-20) < np.inf
