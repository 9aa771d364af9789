"""Laws of the Gaussian process that chooses configurations."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab.tuning.surrogate import posterior, prior
from support.made_up_spaces import valley

RECORD = valley()
US = np.array([RECORD.median_us(place) for place in range(len(RECORD.space))])
POINTS = RECORD.space.points


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 1000), count=st.integers(1, 60), scale=st.sampled_from([1e-6, 1.0, 1e9]))
def test_choices_are_new_distinct_and_finite_for_any_scale_of_the_forecast(seed: int, count: int, scale: float) -> None:
    draw = np.random.default_rng(seed)
    forecast = scale * np.exp(draw.normal(size=len(US)))
    places = [int(place) for place in draw.choice(len(US), count, replace=False)]
    found = posterior(POINTS, forecast, places, US[places].tolist())
    assert np.isfinite(found.mean).all()
    assert (found.variance > 0).all()
    pending = [int(place) for place in draw.choice(len(US), 5, replace=False)]
    chosen = found.pick(16, pending, {*places, *pending})
    assert len(set(chosen)) == 16
    assert not {*places, *pending} & {*chosen}


def test_before_a_measurement_the_shortest_forecast_comes_first() -> None:
    chosen = prior(POINTS, US).pick(8, [], [0])
    assert chosen[0] == int(np.argmin(US))
    assert np.median(US[chosen]) < np.median(US)


def test_all_are_chosen_before_none_is_left() -> None:
    found = posterior(POINTS, np.ones(len(US)), [0, 1], US[:2].tolist())
    assert sorted(found.pick(len(US), [], [0, 1])) == list(range(2, len(US)))


def test_a_pending_configuration_makes_its_neighbours_less_interesting() -> None:
    forecast = np.ones(len(US))
    first = prior(POINTS, forecast).pick(1, [0], [0])[0]
    far = ((POINTS - POINTS[0]) ** 2).sum(axis=1)
    assert far[first] > np.median(far)
