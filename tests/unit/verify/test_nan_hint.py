"""The hint that a NaN came from an operand that must not be read."""

from __future__ import annotations

import numpy as np
import pytest

from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.verify.elementwise import Mismatch
from gemmlab.verify.nan_hint import explained, nan_cause


def nan_in_c(reference: float = 1.0) -> Mismatch:
    return Mismatch("c", 0, 0, float("nan"), reference, 1e-7, 1, 4, 1, ())


@pytest.mark.parametrize(
    ("alpha", "beta", "said"),
    [
        (
            1.0,
            0.0,
            "c held NaN before the call, because nothing is added to it: write all of it, read none",
        ),
        (
            0.0,
            1.0,
            "a and b held NaN before the call, because this problem makes no use of them: they must not be read",
        ),
        (0.0, 0.0, "a, b and c held NaN before the call"),
        (1.0, 1.0, None),
    ],
)
def test_it_names_what_held_nan(alpha: float, beta: float, said: str | None) -> None:
    contents = GemmOp().fill(GemmProblem(2, 2, 3, alpha, beta), np.random.default_rng(0))
    hint = nan_cause(nan_in_c(), contents)
    assert (hint or "").startswith(said or "")
    assert (hint is None) == (said is None)
    assert ("held NaN" in explained(nan_in_c(), contents)) == (said is not None)


def test_a_nan_that_ought_to_be_there_needs_none() -> None:
    contents = GemmOp().fill(GemmProblem(2, 2, 3), np.random.default_rng(0))
    assert nan_cause(nan_in_c(float("nan")), contents) is None
