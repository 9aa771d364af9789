"""`precision=` of the library call, and the pure choice behind it."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.precision import BY_TILE, FLOAT32, PRECISIONS, TF32
from gemmlab.dispatch.precision_rule import METHODS, REQUESTS, precision_for


def test_the_fastest_that_will_do_is_chosen() -> None:
    assert precision_for("highest", PRECISIONS) == FLOAT32
    assert precision_for("tf32", PRECISIONS) == TF32
    assert precision_for("tf32", (FLOAT32,)) == FLOAT32
    assert precision_for("float32", PRECISIONS) == BY_TILE
    assert [precision_for(method, PRECISIONS) for method in METHODS] == list(METHODS)
    with pytest.raises(gemmlab.UsageError, match="precision 'highest' is not offered here: there is tf32"):
        precision_for("highest", (TF32,))


@pytest.mark.parametrize(("asked", "offered"), list(product(REQUESTS, [PRECISIONS, PRECISIONS[::-1], (FLOAT32,)])))
def test_it_is_never_lower_than_asked(asked: str, offered: tuple[str, ...]) -> None:
    # PRECISIONS has the highest first.
    assert PRECISIONS.index(precision_for(asked, offered)) <= PRECISIONS.index(REQUESTS[asked][-1])


def test_a_cpu_computes_in_float32_whatever_is_enough() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((33, 35), np.float32), rng.standard_normal((35, 37), np.float32)
    plain = gemmlab.gemm(a, b)
    for precision in ("highest", "float32", "f16x3", "tf32"):
        assert gemmlab.gemm(a, b, precision=precision).tobytes() == plain.tobytes()


@pytest.mark.parametrize("precision", ["", "high", "TF32", "by_tile", "bfloat16"])
def test_an_unknown_precision_is_refused(precision: str) -> None:
    one = np.ones((2, 2), np.float32)
    with pytest.raises(
        gemmlab.UsageError, match=rf"precision is '{precision}'; it must be one of 'highest', 'float32', "
    ):
        gemmlab.gemm(one, one, precision=precision)


@pytest.mark.parametrize("precision", [None, 3, ["tf32"]])
def test_what_is_no_name_is_of_the_wrong_type(precision: Any) -> None:
    one = np.ones((2, 2), np.float32)
    with pytest.raises(gemmlab.ArgumentTypeError, match="precision is"):
        gemmlab.gemm(one, one, precision=precision)
