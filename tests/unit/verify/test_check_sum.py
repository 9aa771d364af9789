"""The check of `gemmlab.sum`: NumPy warns of what is not finite, and only that is kept from people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.ops.reduce import ReduceProblem
from gemmlab.verify.check_sum import check_sum

LENGTHS = (7, 64, 1000)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("contents", ["uniform", "nan", "infinite", "opposed", "huge"])
def test_sums_that_are_not_finite_warn_nobody(contents: str) -> None:
    problems = [ReduceProblem(n, contents=contents) for n in LENGTHS]
    # A warning would come as an exception, which the check counts as a failure.
    report = check_sum(gemmlab.sum, name="gemmlab.sum", threads=2, problems=problems)
    assert report.passed, report.explain()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_warning_about_an_ordinary_sum_is_let_through() -> None:
    def warns(x: Any, axis: Any, *, threads: Any) -> Any:
        np.add(np.float32(3e38), np.float32(3e38))
        return gemmlab.sum(x, axis, threads=threads)

    report = check_sum(warns, name="warns", problems=[ReduceProblem(64)])
    assert "raised RuntimeWarning: overflow" in report.explain()
