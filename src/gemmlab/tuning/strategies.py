"""Strategies, the order in which configurations are tried: successive halving, random order, and all of them.

`Halving` has two parts. The first searches good regions: after every few turns, the configurations with the greatest
expected improvement by a Gaussian process (`surrogate.py`) join the queue of those to compile, so that compilers and
device work at the same time. Before the first turn the forecast alone decides. The second part is successive halving
(Jamieson and Talwalkar 2016): the fastest few take turns in rounds, in random order, and after a few rounds the slower
half is dropped. Configurations that were clearly slower in the first part do not take part.

What is compiled first has the first turn. A journal has that order, so a resumed search goes the same way.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gemmlab.tuning.search import CONFIRMED, BudgetEnd, Search
from gemmlab.tuning.surrogate import Float64Array, Posterior, posterior, prior

_LEAST_AHEAD = 4
"""Lower limit of the number of configurations being compiled or waiting for a first turn (`Constants.ahead`)."""


class Strategy(Protocol):
    """A way to search. `run` ends by itself, or by the exception `BudgetEnd`, which the caller expects."""

    @property
    def name(self) -> str: ...

    def run(self, search: Search) -> None: ...


@dataclass(frozen=True, slots=True)
class Constants:
    """The constants of `Halving`, fixed on other recorded spaces than those that evaluate it (docs/tuning.md)."""

    ahead: float = 1.5
    """Number, for each compiler, of configurations that are being compiled or wait for their first turn. With more of
    them no compiler is idle; with fewer of them each is chosen by more measurements.
    """
    leave: float = 1.1
    """A configuration takes no part in the second part if its median is more than this many times the best one's."""
    finalists: int = 6
    """The most configurations of the second part."""
    rounds: int = 2
    """Rounds before the slower half is dropped, each time."""
    most_final: float = 0.2
    """The largest fraction of the budget for the second part."""
    growth: float = 0.1
    """The Gaussian process is computed again when the number of tried configurations has grown by this fraction, or
    earlier if a compiler would be idle.
    """
    again: float = 1.4
    """The correlation lengths of the Gaussian process are fitted again when the number of tried configurations has
    grown by this factor.
    """


FITTED = Constants()


class _Chooser:
    """The part of `Halving` that chooses configurations and submits them; `queue` has those without a turn."""

    def __init__(self, search: Search, draw: random.Random, constants: Constants) -> None:
        self._search, self._constants = search, constants
        # Equal forecasts are tried in random order.
        slight = np.array([1e-3 * draw.random() for _ in range(len(search.space))])
        self._forecast = np.asarray(search.forecast) * np.exp(slight)
        self._most = max(_LEAST_AHEAD, round(constants.ahead * search.bench.builders))
        self._tried, self._fitted = 0, 0
        self._lengths: Float64Array | None = None
        self.queue = list[int]()
        # The default is among the first: a user wants to know what the search gains over it.
        self._submit([0])
        self._more(prior(search.space.points, self._forecast))

    def tried(self, count: int) -> None:
        """Choose and submit further configurations after `count` were tried, if enough are new (`Constants.growth`)."""
        # Choose at the latest when a compiler would be idle.
        spare = self._most - self._search.bench.builders
        if count - self._tried < max(1.0, min(self._constants.growth * count, spare)):
            return
        self._tried = count
        space, able, faults = self._search.space, self._search.ranking(), self._search.faults()
        if not able:
            self._more(prior(space.points, self._forecast))
            return
        # A configuration with a fault counts as the slowest: its neighbours are likely to have one, too.
        places = [one.place for one in (*able, *faults)]
        us = [one.median for one in able] + [able[-1].median] * len(faults)
        keep = self._lengths if count < self._constants.again * self._fitted else None
        found = posterior(space.points, self._forecast, places, us, keep)
        if keep is None:
            self._lengths, self._fitted = found.lengths, count
        self._more(found)

    def _more(self, found: Posterior) -> None:
        known = self._search.standings
        pending = list(known) if np.isinf(found.best) else self.queue
        self._submit(found.pick(self._most - len(self.queue), pending, known.keys()))

    def _submit(self, places: Sequence[int]) -> None:
        self._search.submit(places)
        self.queue.extend(places)


@dataclass(frozen=True, slots=True)
class Halving:
    """The default strategy: promising regions first, then successive halving (see the module)."""

    seed: int = 0
    constants: Constants = FITTED
    name: str = "gemmlab"

    def run(self, search: Search) -> None:
        draw = random.Random(f"{self.seed} {len(search.space)}")  # noqa: S311 - an order, not a secret
        chooser, count = _Chooser(search, draw, self.constants), 0
        while chooser.queue and search.left_s > self._final_s(search):
            place = search.soonest(chooser.queue)
            chooser.queue.remove(place)
            self._try(search, place)
            count += 1
            chooser.tried(count)
        self._decide(search, draw)

    def _try(self, search: Search, place: int) -> None:
        """Time a first turn. A new best takes two more immediately, because all others are compared with it."""
        leader = min((one.median for one in search.standings.values()), default=float("inf"))
        us = search.turn(place)
        if us is not None and us < leader:
            for _ in range(CONFIRMED - 1):
                search.turn(place)

    def _finalists(self, search: Search) -> list[int]:
        able = search.ranking()
        limit = self.constants.leave * able[0].median if able else 0.0
        return [one.place for one in able if one.median <= limit][: self.constants.finalists]

    def _final_s(self, search: Search) -> float:
        """Return the seconds to reserve for the second part."""
        final = self._finalists(search)
        turns = sum(CONFIRMED - min(CONFIRMED, len(search.standings[place].us)) for place in final)
        count = len(final)
        while count > 1:
            turns += self.constants.rounds * count
            count = (count + 1) // 2
        return min(turns * search.turn_s, self.constants.most_final * search.budget_s)

    def _decide(self, search: Search, draw: random.Random) -> None:
        final = self._finalists(search)
        for _ in range(CONFIRMED - 1):
            for place in draw.sample(final, len(final)):
                if len(search.standings[place].us) < CONFIRMED:
                    search.turn(place)
        while len(final) > 1:
            for _ in range(self.constants.rounds):
                for place in draw.sample(final, len(final)):
                    search.turn(place)
            final = sorted(final, key=lambda place: (search.standings[place].median, place))[: (len(final) + 1) // 2]


@dataclass(frozen=True, slots=True)
class RandomOrder:
    """Configurations in random order, one turn each: the baseline for every search."""

    seed: int = 0
    name: str = "random"

    def run(self, search: Search) -> None:
        order = list(range(len(search.space)))
        random.Random(self.seed).shuffle(order)  # noqa: S311 - an order, not a secret
        _in_turn(search, order)


@dataclass(frozen=True, slots=True)
class Exhaustive:
    """All configurations, one turn each, then rounds among the fastest. Searches by it make the record of a space."""

    seed: int = 0
    finalists: int = 10
    rounds: int = 10
    name: str = "exhaustive"

    def run(self, search: Search) -> None:
        _in_turn(search, list(range(len(search.space))))
        draw = random.Random(self.seed)  # noqa: S311 - an order, not a secret
        final = [one.place for one in search.ranking()[: self.finalists]]
        for _ in range(self.rounds):
            for place in draw.sample(final, len(final)):
                search.turn(place)


def run_within_budget(strategy: Strategy, search: Search) -> None:
    """Run a strategy to its end, or to the end of the search's budget."""
    from threadpoolctl import threadpool_limits

    # The fits are small, and the cores belong to the compilers.
    with threadpool_limits(1, "blas"), suppress(BudgetEnd):
        strategy.run(search)


def _in_turn(search: Search, order: list[int]) -> None:
    """Time one turn of each configuration, roughly in `order`: the next is the one that is compiled first.

    Twice as many configurations as there are compilers are submitted ahead.
    """
    ahead = 2 * search.bench.builders
    queue, later = order[:ahead], deque(order[ahead:])
    search.submit(queue)
    while queue:
        place = search.soonest(queue)
        queue.remove(place)
        if later:
            queue.append(later.popleft())
            search.submit(queue[-1:])
        search.turn(place)
