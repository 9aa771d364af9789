"""The end of a search: the neighbours of its best configuration are timed, and a better one becomes the best."""

from __future__ import annotations

from contextlib import suppress

from gemmlab.results.sensitivity import neighbours
from gemmlab.tuning.search import BudgetEnd, Search, Standing


def look_around(search: Search, best: Standing) -> Standing:
    """Time the neighbours of the best configuration that have no time yet, and return the best of all.

    `results.sensitivity.neighbours` names them. If one of them is better, its neighbours follow. The search
    ends with the budget.
    """
    visited = set[int]()
    with suppress(BudgetEnd):
        while best.place not in visited:
            visited.add(best.place)
            _time_neighbours(search, best)
            best = search.best() or best
    return search.best() or best


def _time_neighbours(search: Search, best: Standing) -> None:
    space = search.space
    around = neighbours(space.config(best.place), [space.config(place) for place in range(len(space))])
    search.submit(around)
    for place in around:
        if not search.standings[place].us:
            search.turn(place)
    # A lucky sample is no better configuration: further turns decide.
    for one in [search.standings[place] for place in around]:
        while one.median < best.median and len(one.us) < search.confirmed:
            search.turn(one.place)
