"""`gemmlab.gemm(..., kernel=, config=)` on the CPU: kernels of each kind, every layout, and what cannot be forced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import ArgumentTypeError, UsageError

RNG = np.random.default_rng(11)
A, B, C = (RNG.random(shape, dtype=np.float32) - np.float32(0.5) for shape in ((37, 53), (53, 29), (37, 29)))


# One that reads nn alone, one that reads every layout, one with a workspace, one with threads.
@pytest.mark.parametrize("kernel", ["naive_ijk", "blas_naive", "packed", "threaded"])
def test_any_rung_computes_any_views(kernel: str) -> None:
    expected = 0.5 * A @ B + 2 * C
    for a in (A, np.asfortranarray(A), np.repeat(A, 2, 1)[:, ::2]):
        for b in (B, np.asfortranarray(B), B[::-1][::-1]):
            for out in (None, np.empty((29, 37), np.float32).T, np.empty((37, 58), np.float32)[:, ::2]):
                found = gemmlab.gemm(a, b, alpha=0.5, beta=2, c=C, out=out, kernel=kernel)
                np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
    batch = np.stack([A, 2 * A])
    np.testing.assert_allclose(gemmlab.gemm(batch, B, kernel=kernel), batch @ B, rtol=1e-3, atol=1e-5)
    assert gemmlab.gemm(A[:0], B, kernel=kernel).shape == (0, 29)
    np.testing.assert_array_equal(gemmlab.gemm(A[:, :0], B[:0], beta=1, c=C, kernel=kernel), C)


def test_a_configuration_with_and_without_a_kernel() -> None:
    asked: list[dict[str, Any]] = [{"kernel": "packed", "config": {"KC": 64}}, {"config": {"LANES": 0}}, {"config": {}}]
    for options in asked:
        np.testing.assert_allclose(gemmlab.gemm(A, B, threads=1, **options), A @ B, rtol=1e-3, atol=1e-5)


def test_threads_do_not_change_the_result() -> None:
    one, two = (gemmlab.gemm(A, B, kernel="threaded", threads=count) for count in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"kernel": "nobody"}, UsageError, "no kernel named 'nobody'"),
        ({"kernel": "naive"}, UsageError, "naive runs on a GPU; the operands lie on a CPU"),
        ({"kernel": "reduce_scalar"}, UsageError, "reduce_scalar is a kernel for reduce"),
        ({"kernel": 3}, ArgumentTypeError, "kernel is 3"),
        ({"kernel": "packed", "config": {"XX": 1}}, UsageError, "unknown parameter 'XX'"),
        ({"kernel": "packed", "config": {"KC": -1}}, UsageError, "constraints"),
        ({"config": 3}, ArgumentTypeError, "config is 3"),
        ({"config": {"LANES": 1.5}}, ArgumentTypeError, "LANES in config is 1.5"),
    ],
)
def test_errors(options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        gemmlab.gemm(A, B, **options)
