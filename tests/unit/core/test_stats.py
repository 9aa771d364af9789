"""Statistics against answers known beforehand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmlab.core.stats import Ratio, combine_ratios, geometric_mean, ratio_of_medians, spread

POSITIVE = st.floats(1e-3, 1e3)


def _grid(values: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> dict[tuple[int, int], float]:
    return {(p, r): float(values[p, r]) for p in range(values.shape[0]) for r in range(values.shape[1])}


def test_spread_of_known_numbers() -> None:
    found = spread([1.0, 2.0, 3.0, 4.0, 100.0])
    assert (found.count, found.median, found.iqr, found.mad) == (5, 3.0, 2.0, 1.0)


def test_spread_needs_samples() -> None:
    with pytest.raises(ValueError, match="no samples"):
        spread([])


def test_geometric_mean_of_known_numbers() -> None:
    assert geometric_mean([1.0, 4.0, 16.0]) == pytest.approx(4.0)


@pytest.mark.parametrize("bad", [[], [1.0, 0.0], [1.0, -2.0], [float("nan")]])
def test_geometric_mean_refuses(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        geometric_mean(bad)


@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=1, max_size=20))
def test_geometric_mean_of_ratios_is_the_ratio_of_means(pairs: list[tuple[float, float]]) -> None:
    over = geometric_mean([a / b for a, b in pairs])
    assert over == pytest.approx(geometric_mean([a for a, _ in pairs]) / geometric_mean([b for _, b in pairs]))


@given(st.lists(POSITIVE, min_size=1, max_size=12), st.floats(0.1, 10))
def test_a_constant_ratio_has_an_interval_of_no_width(times: list[float], factor: float) -> None:
    slow = {(index % 3, index): value * factor for index, value in enumerate(times)}
    fast = {(index % 3, index): value for index, value in enumerate(times)}
    found = ratio_of_medians(slow, fast, resamples=50)
    assert found.value == pytest.approx(factor)
    assert [found.low, found.high] == pytest.approx([factor, factor])


def test_the_same_seed_gives_the_same_interval() -> None:
    rng = np.random.default_rng(5)
    a, b = _grid(rng.random((3, 15)) + 1), _grid(rng.random((3, 15)) + 1)
    first, second, other = (ratio_of_medians(a, b, seed=seed) for seed in (1, 1, 2))
    assert (first.low, first.high) == (second.low, second.high)
    assert not np.array_equal(first.replicates, other.replicates)


def test_only_shared_moments_count() -> None:
    a = {(0, 0): 2.0, (0, 1): 2.0, (1, 0): 999.0}
    b = {(0, 0): 1.0, (0, 1): 1.0, (2, 0): 1e-9}
    assert ratio_of_medians(a, b).value == 2.0
    with pytest.raises(ValueError, match="no common rounds"):
        ratio_of_medians({(0, 0): 1.0}, {(0, 1): 1.0})


def test_unequal_rounds_in_processes() -> None:
    a = {(0, 0): 1.0, (1, 0): 3.0, (1, 1): 3.0, (1, 2): 3.0}
    b = dict.fromkeys(a, 1.0)
    found = ratio_of_medians(a, b)
    assert found.value == 3.0
    assert (found.low, found.high) == (1.0, 3.0)
    assert np.all(np.isfinite(found.replicates))


def test_intervals_cover_the_truth_and_know_of_processes() -> None:
    rng = np.random.default_rng(0)
    covered = wide = narrow = 0.0
    for _ in range(100):
        noise = rng.lognormal(0, 0.02, (2, 6, 15))
        shift = rng.lognormal(0, 0.05, (6, 1))
        found = ratio_of_medians(_grid(1.5 * noise[0] * shift), _grid(noise[1]), resamples=200)
        flat = ratio_of_medians(
            _grid((1.5 * noise[0] * shift).reshape(1, -1)), _grid(noise[1].reshape(1, -1)), resamples=200
        )
        covered += found.low <= 1.5 <= found.high
        wide += found.high - found.low
        narrow += flat.high - flat.low
    assert covered >= 80
    assert wide > 1.2 * narrow


def test_combined_ratios_keep_what_rounds_had_in_common() -> None:
    up, down = np.array([1.0, 1.2] * 50), np.array([1.0, 1 / 1.2] * 50)
    together = combine_ratios([Ratio(1.1, 1.0, 1.2, up), Ratio(1 / 1.1, 1 / 1.2, 1.0, down)])
    assert together.value == pytest.approx(1.0)
    assert [together.low, together.high] == pytest.approx([1.0, 1.0])
