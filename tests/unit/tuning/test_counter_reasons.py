"""Reasons for what a parameter costs: only counters that move with the time."""

from __future__ import annotations

import pytest

from gemmlab.results.sensitivity import Change
from gemmlab.tuning.counter_reasons import MOST_REASONS, explained

BEFORE = {"instructions": 1000.0, "global_load_sectors": 400.0, "barriers": 10.0, "registers": 32.0}
AFTER = {"instructions": 700.0, "global_load_sectors": 800.0, "barriers": 100.0, "registers": 32.0}


def change(ratio: float) -> Change:
    return Change(("UNROLL",), (4,), (64,), 100.0 * ratio, ratio)


def test_a_slower_configuration_has_the_counters_that_rise_the_largest_first() -> None:
    assert explained(change(1.1), BEFORE, AFTER).reasons == ("barriers 10 -> 100", "sectors loaded 400 -> 800")


def test_a_faster_configuration_has_the_counters_that_fall() -> None:
    assert explained(change(0.9), BEFORE, AFTER).reasons == ("instructions 1,000 -> 700",)


@pytest.mark.parametrize("ratio", [0.9, 1.1])
def test_counters_that_move_against_the_time_or_hardly_are_no_reason(ratio: float) -> None:
    factor = 0.5 if ratio > 1 else 2.0
    after = {name: value * factor for name, value in BEFORE.items()} | {"barriers": 10.0}
    assert explained(change(ratio), BEFORE, after).reasons == ()
    assert explained(change(ratio), BEFORE, {}).reasons == ()


def test_there_are_few_reasons() -> None:
    before = dict.fromkeys(("instructions", "registers", "barriers", "global_load_requests"), 10.0)
    after = dict.fromkeys(before, 90.0)
    assert len(explained(change(2.0), before, after).reasons) == MOST_REASONS
