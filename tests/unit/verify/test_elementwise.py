from __future__ import annotations

import math

import numpy as np
import pytest

from gemmlab.core.precision import LARGEST
from gemmlab.ops.op import Expected, Float32Array
from gemmlab.verify.elementwise import SOURCE_LIMIT, Comparison, compare

INF, NAN = math.inf, math.nan


def one(value: float, reference: float, tolerance: float) -> Comparison:
    expected = Expected(np.array([[reference]]), np.array([[tolerance]]))
    return compare("c", np.array([[value]], np.float32), expected, 1)


@pytest.mark.parametrize(
    ("value", "reference", "tolerance", "right"),
    [
        (1.0, 1.0, 0.0, True),
        (1.5, 1.0, 0.5, True),
        (1.5, 1.0, 0.49, False),
        (NAN, 1.0, 0.5, False),
        (INF, 1.0, 0.5, False),
        (NAN, NAN, 0.0, True),
        (1.0, NAN, 0.0, False),
        (INF, NAN, 0.0, False),
        (INF, INF, 0.0, True),
        (-INF, INF, 0.0, False),
        (NAN, INF, 0.0, False),
        (LARGEST, INF, 0.0, False),
        (INF, 1e39, 1e32, True),
        (-INF, 1e39, 1e32, False),
        (LARGEST, 1e39, 1e32, False),
        (INF, LARGEST, 1e32, True),
        (INF, 3e38, 1e32, False),
        (NAN, 1.0, INF, True),
        (INF, 1.0, INF, True),
        (-0.0, 0.0, 0.0, True),
    ],
)
def test_values_are_compared_by_class_and_bound(value: float, reference: float, tolerance: float, right: bool) -> None:
    assert (one(value, reference, tolerance).mismatch is None) is right


@pytest.mark.parametrize(("value", "ratio"), [(1.25, 0.5), (2.0, 2.0), (1.0, 0.0), (INF, INF), (NAN, INF)])
def test_the_ratio_is_error_over_bound(value: float, ratio: float) -> None:
    assert one(value, 1.0, 0.5).worst_ratio == ratio


def test_an_exact_bound_makes_any_error_infinite() -> None:
    assert one(1e-30, 0.0, 0.0).worst_ratio == INF
    assert one(0.0, 0.0, 0.0).worst_ratio == 0.0


def test_empty_outputs_compare() -> None:
    empty = np.empty((0, 5), np.float32)
    compared = compare("c", empty, Expected(np.empty((0, 5)), np.empty((0, 5))), 3)
    assert compared.mismatch is None
    assert compared.worst_ratio == 0


def test_the_worst_tiles_come_first_and_their_number_is_told() -> None:
    values = np.zeros((128, 128))
    actual = values.astype(np.float32)
    actual[::32, ::32] = 1
    actual[64:70, 96:100] = 1
    mismatch = compare("c", actual, Expected(values, np.full_like(values, 0.1)), 1).mismatch
    assert mismatch
    assert (mismatch.worst_tiles[0].row, mismatch.worst_tiles[0].column, mismatch.worst_tiles[0].wrong) == (64, 96, 24)
    assert mismatch.wrong == 16 + 23
    assert mismatch.wrong_tiles == 16
    assert "the worst of 16 tiles" in mismatch.explain()


def global_similarity(x: Float32Array, y: Float32Array) -> float:
    a, b = x.astype(np.float64), y.astype(np.float64)
    return float(1 - 2 * (a * b).sum() / (a * a + b * b).sum())


def test_a_global_norm_lets_300_zeroed_outputs_pass_and_the_bound_does_not() -> None:
    rng = np.random.default_rng(5)
    n = 1024
    a, b = (rng.standard_normal((n, 64)).astype(np.float32) for _ in range(2))
    values = a.astype(np.float64) @ b.astype(np.float64).T
    bound = (64 + 4) * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64).T)
    actual = a @ b.T
    assert compare("c", actual, Expected(values, bound), 64).mismatch is None
    broken = actual.copy()
    broken.reshape(-1)[rng.choice(n * n, 300, replace=False)] = 0
    assert global_similarity(broken, values.astype(np.float32)) < 1e-3
    mismatch = compare("c", broken, Expected(values, bound), 64).mismatch
    assert mismatch
    assert mismatch.wrong == 300


def test_the_sources_own_test_is_blind_to_nan_and_to_errors_in_long_sums() -> None:
    # Its rule: |error| / |value| / dot length under 1e-6. With K = 100,000 an error of 5 % passes.
    compared = compare(
        "c", np.full((4, 4), 1.05, np.float32), Expected(np.ones((4, 4)), np.full((4, 4), 1e-4)), 100_000
    )
    assert compared.source_error < SOURCE_LIMIT
    assert compared.mismatch
    forgotten = np.ones((4, 4), np.float32)
    forgotten[2, 1] = NAN
    compared = compare("c", forgotten, Expected(np.ones((4, 4)), np.full((4, 4), 1e-4)), 4)
    assert compared.source_error < SOURCE_LIMIT
    assert compared.mismatch
    assert compared.mismatch.wrong == 1
    # And it fails what cancellation makes of a perfectly rounded sum.
    tiny = compare("c", np.array([[1e-9]], np.float32), Expected(np.array([[2e-9]]), np.array([[1e-6]])), 4)
    assert tiny.source_error > SOURCE_LIMIT
    assert tiny.mismatch is None


def test_a_large_result_is_judged_in_blocks_as_a_small_one_is() -> None:
    rng = np.random.default_rng(3)
    values = rng.standard_normal((1500, 1000))
    expected = Expected(values, np.full(values.shape, 1e-6))
    right = values.astype(np.float32)
    whole, small = (
        compare("c", right, expected, 7),
        compare("c", right[:3], Expected(values[:3], expected.bound[:3]), 7),
    )
    error = np.abs(right - values)
    assert whole.mismatch is None
    assert whole.worst_ratio == pytest.approx(error.max() / 1e-6)
    assert small.worst_ratio == pytest.approx(error[:3].max() / 1e-6)
    assert whole.source_error == pytest.approx((error / np.abs(right)).max() / 7)
    right[1490, 3] = np.nan
    right[700, 999] += 1
    wrong = compare("c", right, expected, 7)
    assert wrong.mismatch is not None
    assert (wrong.mismatch.row, wrong.mismatch.column, wrong.mismatch.wrong) == (700, 999, 2)
    assert wrong.worst_ratio == math.inf
