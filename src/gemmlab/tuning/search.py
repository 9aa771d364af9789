"""One search: the outcomes of each configuration, the budget, and the operations of a strategy.

A configuration is timed only after it was compiled and its result compared with the reference. One with a wrong result
is named among the faults and has no time, so it cannot win.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gemmlab.core.numerals import duration
from gemmlab.tuning.outcomes import Bench, Build, Verdict
from gemmlab.tuning.space import Space

CONFIRMED = 3
"""Number of turns after which a median is reliable: a single outlier among them does not change it much."""


class BudgetEnd(Exception):  # noqa: N818 - no error: it ends a strategy
    """An exception that ends a strategy when the budget is used up."""


@dataclass(slots=True)
class Standing:
    """All outcomes of one configuration."""

    place: int
    build: Build | None = None
    verdict: Verdict | None = None
    us: list[float] = field(default_factory=list)
    """The time of a call in each turn (`outcomes.Turn.us`), microseconds."""
    fault: str = ""
    """The reason why the configuration cannot win: it does not compile, does not run, or its result is wrong."""

    @property
    def median(self) -> float:
        """The median of `us`; infinite without a turn or with a fault."""
        return statistics.median(self.us) if self.us and not self.fault else float("inf")


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a search, for a live display."""

    tried: int
    """Number of configurations with a time or a fault."""
    left: int
    """Number of configurations that were not tried."""
    seconds: float
    """Time since the beginning, by the bench's clock."""
    best: Standing | None
    """`Search.best`; `None` before the first time."""

    def text(self, word: str) -> str:
        """Return the state in words. `word` says what the best one's time is: `"best"`, or `"predicted"`."""
        first = f"{word} {duration(self.best.median)}, " if self.best is not None else ""
        return f"{first}{self.tried} tried, {self.left} left, {self.seconds:.0f} s"


class Search:
    """The search of one space on one bench. `standings` has an entry for each configuration that was submitted."""

    def __init__(
        self, space: Space, bench: Bench, budget_s: float, *, forecast: Sequence[float] = (), exact: bool = False,
        report: Callable[[Progress], object] = lambda _progress: None,
    ) -> None:  # fmt: skip
        self.space, self.bench, self.budget_s = space, bench, budget_s
        self.forecast = tuple(forecast) or (1.0,) * len(space)
        """Times of all configurations, forecast before any compilation, by default 1. Only their ratios matter."""
        self.confirmed = 1 if exact else CONFIRMED
        """Number of turns that make a median reliable: 1 if all turns of a configuration have one time (`exact`)."""
        self.standings: dict[int, Standing] = {}
        self._report = report
        self._turns, self._turns_s = 0, 0.0

    @property
    def left_s(self) -> float:
        """Seconds of the budget that are left; not negative."""
        return max(0.0, self.budget_s - self.bench.seconds)

    @property
    def turn_s(self) -> float:
        """The mean duration of a turn so far, in seconds; 0 before the first."""
        return self._turns_s / self._turns if self._turns else 0.0

    def submit(self, places: Sequence[int]) -> None:
        """Begin to compile those configurations that were not submitted before.

        Raises `BudgetEnd` after the end of the budget.
        """
        self._require_time()
        fresh = [place for place in dict.fromkeys(places) if place not in self.standings]
        for place in fresh:
            self.standings[place] = Standing(place)
        if fresh:
            self.bench.submit(fresh)
            self._report(self.progress())

    def soonest(self, places: Sequence[int]) -> int:
        """Wait, until the end of the budget at most, for the first of these submitted configurations that is compiled.

        Return its number, or the first of `places` if none is compiled by then (`Bench.soonest`).
        """
        return self.bench.soonest(places, self.budget_s)

    def turn(self, place: int) -> float | None:
        """Time one turn of a submitted configuration, after its compilation and verification; return microseconds.

        `None` for a configuration with a fault. Raises `BudgetEnd` at the end of the budget: before a new step of the
        work, or while the compilation is awaited.
        """
        one = self.standings[place]
        if one.build is None:
            self._require_time()
            one.build = self.bench.build(place, self.budget_s)
            if one.build is None:
                raise BudgetEnd
            one.fault = one.build.fault
        if not one.fault and one.verdict is None:
            self._require_time()
            one.verdict = self.bench.verify(place)
            if not one.verdict.right:
                one.fault = one.verdict.fault or "wrong result"
        if not one.fault:
            self._require_time()
            found = self.bench.turn(place)
            one.fault = found.fault
            self._turns += 1
            self._turns_s += found.seconds
            if not found.fault:
                one.us.append(found.us)
        self._report(self.progress())
        return None if one.fault else one.us[-1]

    def ranking(self) -> list[Standing]:
        """Return the configurations with times, the least median first."""
        able = [one for one in self.standings.values() if one.us and not one.fault]
        return sorted(able, key=lambda one: (one.median, one.place))

    def best(self) -> Standing | None:
        """Return the configuration with the least median among those with at least `confirmed` turns.

        If none has as many, those with the most turns count. A lucky single sample thus does not win. `None` if no
        configuration has a time.
        """
        able = self.ranking()
        enough = min(self.confirmed, max((len(one.us) for one in able), default=0))
        return next((one for one in able if len(one.us) >= enough), None)

    def faults(self) -> list[Standing]:
        """Return the configurations that cannot win, in the order of submission."""
        return [one for one in self.standings.values() if one.fault]

    def progress(self) -> Progress:
        """Return the current state of the search."""
        tried = sum(1 for one in self.standings.values() if one.us or one.fault)
        return Progress(tried, len(self.space) - tried, self.bench.seconds, self.best())

    def _require_time(self) -> None:
        if self.bench.seconds >= self.budget_s:
            raise BudgetEnd
