"""The model judged by pairs of configurations, on cases written by hand and on those of the H200."""

from __future__ import annotations

import pytest

from gemmlab.analysis.model.changes import changes, ratio_error, sign_rate
from gemmlab.analysis.model.model_record import CONFIGURATION, Case, recorded_model


def case(kernel: str, measured: float, predicted: float, size: str = "64x64x64") -> Case:
    return Case(
        kernel, "gemm", size, "float32", {"BM": int(measured)}, CONFIGURATION, "code", True, measured, predicted,
        {"fma": predicted},
    )  # fmt: skip


def test_pairs_are_of_one_kernel_and_size_and_differ_enough() -> None:
    cases = [case("a", 100, 90), case("a", 104, 95), case("a", 200, 150), case("b", 50, 60), case("a", 80, 1, "8x8x8")]
    found = changes(cases)
    assert [(one.slower.measured_us, one.faster.measured_us) for one in found] == [(200, 100), (200, 104)]


def test_sign_and_ratio() -> None:
    (wrong,) = changes([case("a", 100, 120), case("a", 125, 100)])
    assert (wrong.measured, wrong.right) == (1.25, False)
    assert wrong.error == pytest.approx(1 - 100 / 120 / 1.25)
    (right,) = changes([case("b", 100, 100), case("b", 125, 150)])
    assert sign_rate([wrong, right]) == 0.5
    assert ratio_error([right]) == pytest.approx(0.2)


def test_the_recorded_pairs_are_many() -> None:
    known = recorded_model()
    assert known is not None
    found = changes([one for one in known.cases if one.part == CONFIGURATION])
    assert len(found) > 500
    assert all(one.measured >= 1.05 for one in found)
