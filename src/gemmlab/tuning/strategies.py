"""Strategies, the order in which configurations are tried: successive halving, random order, and all of them.

`Halving` has two parts. The first searches good regions: while one batch of configurations is verified and timed for
one turn each, the next batch is compiled. The first batch has configurations with short forecast times, spread over the
space; every other batch has those with the greatest expected improvement by a Gaussian process (`surrogate.py`). The
second part is successive halving (Jamieson and Talwalkar 2016): the fastest few take turns in rounds, in random order,
and after a few rounds the slower half is dropped. Configurations that were clearly slower in their first turn do not
take part.

Only the end of the budget depends on when compilations end, so equal times give an equal search.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gemmlab.tuning.search import BudgetEnd, Search
from gemmlab.tuning.surrogate import Float64Array, posterior

CONFIRMED = 3
"""Turns after which a median is reliable: a single outlier among them does not change it much."""


class Strategy(Protocol):
    """A way to search. `run` ends by itself, or by the exception `BudgetEnd`, which the caller expects."""

    @property
    def name(self) -> str: ...

    def run(self, search: Search) -> None: ...


@dataclass(frozen=True, slots=True)
class Constants:
    """The constants of `Halving`, fixed on other recorded spaces than those that evaluate it (docs/tuning.md)."""

    first: int = 12
    """Number of configurations before the Gaussian process is used."""
    promising: float = 0.5
    """The fraction of the space, with the shortest forecasts, over which the first ones are spread."""
    leave: float = 1.15
    """A configuration is dropped if its first turn takes this many times the best one's."""
    finalists: int = 6
    """The most configurations of the second part."""
    rounds: int = 2
    """Rounds before the slower half is dropped."""
    most_final: float = 0.4
    """The largest fraction of the budget for the second part."""
    batch: int = 4
    """The least number of configurations between two fits."""
    again: float = 1.4
    """The lengths of the Gaussian process are fitted again when the number of configurations has grown by this
    factor.
    """


FITTED = Constants()


@dataclass(frozen=True, slots=True)
class _Fit:
    """Lengths of the Gaussian process, and the number of configurations to which they were fitted."""

    count: int
    lengths: Float64Array


@dataclass(frozen=True, slots=True)
class Halving:
    """The default strategy: promising regions first, then successive halving (see the module)."""

    seed: int = 0
    constants: Constants = FITTED
    name: str = "gemmlab"

    def run(self, search: Search) -> None:
        draw = random.Random(f"{self.seed} {len(search.space)}")  # noqa: S311 - an order, not a secret
        size = max(self.constants.batch, search.bench.builders)
        first = self._first(search, draw, size)
        batch, first = first[:size], first[size:]
        search.submit(batch)
        fit: _Fit | None = None
        while batch and search.left_s > self._final_s(search):
            # The process chooses the next batch before this one is measured, so that compilers and device work at the
            # same time.
            if first:
                following, first = first[:size], first[size:]
            else:
                following, fit = self._next(search, size, draw, fit)
            if following:
                search.submit(following)
            for place in batch:
                self._try(search, place)
                if search.left_s <= self._final_s(search):
                    break
            batch = following
        self._decide(search, draw)

    def _first(self, search: Search, draw: random.Random, size: int) -> list[int]:
        """Return the default, and configurations far from each other among those with the shortest forecasts: at least
        two batches, because the process needs the measurements of the first one.
        """
        count = min(max(self.constants.first, 2 * size), len(search.space))
        pool = max(count, int(self.constants.promising * len(search.space)))
        order = sorted(range(1, len(search.space)), key=lambda place: (search.forecast[place], draw.random()))[:pool]
        points, chosen = search.space.points, [0]
        if not points.shape[1]:
            return [0, *order][:count]
        near = ((points[order] - points[0]) ** 2).sum(axis=1)
        while len(chosen) < min(count, len(order) + 1):
            at = int(np.argmax(near))
            chosen.append(order[at])
            near = np.minimum(near, ((points[order] - points[order[at]]) ** 2).sum(axis=1))
        return chosen

    def _next(
        self, search: Search, count: int, draw: random.Random, before: _Fit | None
    ) -> tuple[list[int], _Fit | None]:
        """Return the next batch, and the fit that chose it."""
        able, faults = search.ranking(), search.faults()
        if len(able) < 2 or not search.space.axes:
            free = [place for place in range(len(search.space)) if place not in search.standings]
            draw.shuffle(free)
            return free[:count], before
        # A configuration with a fault counts as the slowest: its neighbours are likely to have one, too.
        places = [one.place for one in (*able, *faults)]
        us = [one.median for one in able] + [able[-1].median] * len(faults)
        keep = before if before is not None and len(places) < self.constants.again * before.count else None
        found = posterior(
            search.space.points, np.asarray(search.forecast), places, us, None if keep is None else keep.lengths
        )
        return found.pick(count, search.standings.keys()), keep or _Fit(len(places), found.lengths)

    def _try(self, search: Search, place: int) -> None:
        """Time a first turn. A new best takes more turns immediately, because all others are compared with it."""
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
    """All configurations, one turn each, then rounds among the fastest. It makes the record of a space."""

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
    """Run a strategy to its end, or to the end of the budget."""
    from threadpoolctl import threadpool_limits

    # The fits are small, and the cores belong to the compilers.
    with threadpool_limits(1, "blas"), suppress(BudgetEnd):
        strategy.run(search)


def _in_turn(search: Search, order: list[int]) -> None:
    """Time one turn of each configuration, while the compilers are two batches ahead."""
    ahead = 2 * search.bench.builders
    search.submit(order[:ahead])
    for done, place in enumerate(order):
        search.submit(order[ahead + done : ahead + done + 1])
        search.turn(place)
