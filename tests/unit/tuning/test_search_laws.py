"""Laws of every search: its budget, its answer, and what it never times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab.tuning.outcomes import Turn
from gemmlab.tuning.replay import ReplayBench
from gemmlab.tuning.search import CONFIRMED, Search
from gemmlab.tuning.strategies import Exhaustive, Halving, RandomOrder, Strategy, run_within_budget
from support.made_up_spaces import BEST, valley

SPACE = valley(faults=0.1, wrong=0.1)


def strategy_of(name: str, seed: int) -> Strategy:
    found: dict[str, Strategy] = {"ours": Halving(seed), "random": RandomOrder(seed), "all": Exhaustive(seed)}
    return found[name]


@settings(deadline=None, max_examples=15)
@given(
    name=st.sampled_from(["ours", "random", "all"]), seed=st.integers(0, 50), budget=st.floats(0.1, 60.0),
    noise=st.sampled_from([0.0, 0.02]),
)  # fmt: skip
def test_a_search_exceeds_its_budget_by_at_most_one_measurement(
    name: str, seed: int, budget: float, noise: float
) -> None:
    record = valley(faults=0.1, wrong=0.1, noise=noise)
    bench = ReplayBench(record, seed)
    search = Search(record.space, bench, budget)
    run_within_budget(strategy_of(name, seed), search)
    assert bench.seconds <= budget + max(one.verify_s for one in record.outcomes) + 1e-9


@settings(deadline=None, max_examples=15)
@given(name=st.sampled_from(["ours", "random", "all"]), seed=st.integers(0, 50), budget=st.floats(3.0, 60.0))
def test_the_answer_is_the_best_that_was_measured_enough_and_verified(name: str, seed: int, budget: float) -> None:
    search = Search(SPACE.space, ReplayBench(SPACE, seed), budget)
    run_within_budget(strategy_of(name, seed), search)
    best = search.best()
    timed = [one for one in search.standings.values() if one.us]
    assert all(one.verdict is not None and one.verdict.right and not one.fault for one in timed)
    if best is None:
        assert not timed
        return
    enough = min(CONFIRMED, max(len(one.us) for one in timed))
    assert best.median == min(one.median for one in timed if len(one.us) >= enough)


def test_a_round_that_the_budget_ends_does_not_change_the_answer() -> None:
    record = valley()
    search = Search(record.space, ReplayBench(record), float("inf"))
    first, second = sorted(range(len(record.space)), key=record.median_us)[:2]
    search.submit([first, second])
    for place in (first, second) * CONFIRMED:
        search.turn(place)
    search.turn(second)
    best = search.best()
    assert best is not None
    assert best.place == first


def test_a_wrong_configuration_is_named_and_never_wins() -> None:
    search = Search(SPACE.space, ReplayBench(SPACE), 10_000.0)
    run_within_budget(Exhaustive(), search)
    wrong = {place for place, one in enumerate(SPACE.outcomes) if one.wrong}
    assert wrong
    faults = {one.place: one.fault for one in search.faults()}
    assert wrong <= faults.keys()
    assert all(faults[place] == "wrong result" for place in wrong)
    assert all(not search.standings[place].us for place in wrong)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 50), budget=st.floats(0.1, 20.0))
def test_ours_answers_if_a_configuration_was_timed(seed: int, budget: float) -> None:
    search = Search(SPACE.space, ReplayBench(SPACE, seed), budget)
    run_within_budget(Halving(seed), search)
    assert (search.best() is not None) == any(one.us for one in search.standings.values())
    # One configuration is compiled within 1 s and tried within 0.25 s, and not all 12 ahead have a fault.
    assert search.best() is not None or budget < 6 * 1.0 + 12 * 0.25


@pytest.mark.parametrize("forecast", [(), (1e-3, 1e3), (1.0, 1.0)])
def test_no_forecast_keeps_ours_from_an_answer(forecast: tuple[float, ...]) -> None:
    record = valley()
    times = forecast * (len(record.space) // 2)
    search = Search(record.space, ReplayBench(record), 10.0, forecast=times)
    run_within_budget(Halving(), search)
    assert search.best() is not None


@pytest.mark.parametrize("strategy", [Halving(), RandomOrder()], ids=["ours", "random"])
def test_a_slow_compilation_does_not_keep_others_from_their_turns(strategy: Strategy) -> None:
    record = valley()
    slow = (replace(record.outcomes[0], build_s=1000.0), *record.outcomes[1:])
    search = Search(record.space, ReplayBench(replace(record, outcomes=slow)), 30.0)
    run_within_budget(strategy, search)
    assert len(search.ranking()) > 10


def test_configurations_of_one_program_wait_for_one_compilation() -> None:
    record = replace(valley(), programs=(0,) * len(valley().space))
    bench = ReplayBench(record)
    bench.submit(range(10))
    for place in range(10):
        assert bench.build(place, 100.0) is not None
    assert bench.seconds == record.program_s[0] == 1.0
    assert sum(record.build_s) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(5))
def test_ours_finds_the_best_with_a_quarter_of_the_time(seed: int) -> None:
    record = valley(noise=0.01)
    search = Search(record.space, ReplayBench(record, seed), 0.25 * record.exhaustive_s)
    run_within_budget(Halving(seed), search)
    best = search.best()
    assert best is not None
    assert record.median_us(best.place) <= 1.03 * record.best_us


def test_all_of_a_space_is_tried_and_its_fastest_measured_again() -> None:
    record = valley(noise=0.01)
    search = Search(record.space, ReplayBench(record), float("inf"))
    run_within_budget(Exhaustive(finalists=4, rounds=5), search)
    assert len(search.ranking()) == len(record.space)
    assert sorted(len(one.us) for one in search.ranking())[-4:] == [6, 6, 6, 6]
    best = search.best()
    assert best is not None
    assert record.space.members[best.place] == BEST


@pytest.mark.in_turns(20)
def test_a_lucky_sample_does_not_win() -> None:
    record = valley()
    lucky = 3
    outcomes = list(record.outcomes)
    slow = outcomes[lucky]

    class Lucky(ReplayBench):
        first = True

        def turn(self, place: int) -> Turn:
            found = super().turn(place)
            if place == lucky and self.first:
                self.first = False
                return replace(found, us=1.0)
            return found

    search = Search(record.space, Lucky(record), float("inf"))
    run_within_budget(Halving(), search)
    best = search.best()
    assert slow.us[0] > record.best_us
    assert best is not None
    assert best.place != lucky


@pytest.mark.in_turns(20)
def test_nothing_is_submitted_twice() -> None:
    submitted: list[int] = []

    class Listed(ReplayBench):
        def submit(self, places: Sequence[int]) -> None:
            submitted.extend(places)
            super().submit(places)

    search = Search(SPACE.space, Listed(SPACE), 100.0)
    run_within_budget(Halving(), search)
    assert len(submitted) == len(set(submitted)) > 10
