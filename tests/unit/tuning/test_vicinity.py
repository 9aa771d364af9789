"""The end of a search: a better neighbour of its best configuration becomes the answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from gemmlab.core.errors import CompileError, UsageError, WrongResultError
from gemmlab.kernels.catalog import find_kernel
from gemmlab.tuning import session
from gemmlab.tuning.outcomes import Build, Turn
from gemmlab.tuning.replay import ReplayBench
from gemmlab.tuning.search import CONFIRMED, Search, Standing
from gemmlab.tuning.vicinity import look_around
from support.made_up_spaces import BEST, valley

RECORD = valley()
PLACES = {values: place for place, values in enumerate(RECORD.space.members)}
BESIDE, BEHIND = PLACES[128, 64, 16, 4], PLACES[128, 64, 8, 4]


def begun(place: int, turns: int, budget: float = float("inf"), **options: Any) -> tuple[Search, Standing]:
    search = Search(RECORD.space, ReplayBench(RECORD), budget, **options)
    search.submit([place])
    for _ in range(turns):
        search.turn(place)
    best = search.best()
    assert best is not None
    return search, best


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("start", [BESIDE, BEHIND], ids=["beside", "behind"])
def test_a_better_neighbour_is_the_answer_and_so_is_its_own(start: int, exact: bool) -> None:
    search, best = begun(start, CONFIRMED, exact=exact)
    found = look_around(search, best)
    assert found.place == PLACES[BEST]
    assert found is search.best() is search.ranking()[0]
    assert len(found.us) == (1 if exact else CONFIRMED)


def test_an_exact_time_needs_no_further_turns_when_the_budget_ends() -> None:
    search, best = begun(BESIDE, CONFIRMED, exact=True)
    search.submit([PLACES[BEST]])
    search.turn(PLACES[BEST])
    search.budget_s = 0.0
    assert look_around(search, best).place == PLACES[BEST]


def test_a_lucky_sample_of_a_neighbour_does_not_win() -> None:
    class Lucky(ReplayBench):
        def turn(self, place: int) -> Turn:
            found = super().turn(place)
            times[place] += 1
            return replace(found, us=1.0) if place == BESIDE and times[place] == 1 else found

    times = Counter[int]()
    search = Search(RECORD.space, Lucky(RECORD), float("inf"))
    first = PLACES[BEST]
    search.submit([first])
    for _ in range(CONFIRMED):
        search.turn(first)
    assert look_around(search, search.standings[first]).place == first
    assert times[BESIDE] == CONFIRMED


def test_too_small_a_budget_is_no_wrong_result() -> None:
    search = Search(RECORD.space, ReplayBench(RECORD), 3.4)
    error = session._nothing_right(find_kernel("naive"), search, 4.0)
    assert isinstance(error, UsageError)
    assert error.exit_code == 2
    assert "in 3.4 s" in str(error)
    assert "such as 60 s for each size" in str(error)
    assert "such as 400 s" in str(session._nothing_right(find_kernel("naive"), search, 200.0))


def test_a_kernel_that_does_not_compile_is_no_wrong_result() -> None:
    search = Search(RECORD.space, ReplayBench(RECORD), 100.0)
    search.standings[0] = Standing(0, build=Build(0, "no such name"), fault="no such name")
    error = session._nothing_right(find_kernel("naive"), search, 100.0)
    assert isinstance(error, CompileError)
    assert error.exit_code == 2
    assert "none of 1 configuration tried compiles; " in str(error)


def test_faults_of_all_that_were_tried_are_a_wrong_result() -> None:
    record = valley(wrong=1.0)
    search = Search(record.space, ReplayBench(record), 100.0)
    search.submit([0])
    search.turn(0)
    error = session._nothing_right(find_kernel("naive"), search, 100.0)
    assert isinstance(error, WrongResultError)
    assert "none of 1 configuration tried can win" in str(error)
