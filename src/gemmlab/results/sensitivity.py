"""The effect of each parameter: times of configurations that differ from the best one in one parameter, or in two."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Config = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Point:
    """A configuration and its time in microseconds."""

    config: Config
    us: float


@dataclass(frozen=True, slots=True)
class Change:
    """The best configuration with other values of one or two parameters."""

    names: tuple[str, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    us: float
    ratio: float
    """Time divided by that of the best configuration."""
    reasons: tuple[str, ...] = field(default=())
    """The counters that the change alters, in words; empty if nothing was counted."""

    @property
    def text(self) -> str:
        """The change in words: `"BK 8 -> 16 costs 4.0 %"`."""
        moves = ", ".join(
            f"{name} {old} -> {new}" for name, old, new in zip(self.names, self.before, self.after, strict=True)
        )
        percent = 100.0 * abs(self.ratio - 1.0)
        return f"{moves} {'costs' if self.ratio >= 1.0 else 'saves'} {percent:.1f} %"


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The changes of one or two parameters of the best configuration, each with its measured or predicted time."""

    title: str
    """Kernel, problem and device."""
    best: Config
    us: float
    single: tuple[Change, ...]
    """Changes of exactly one parameter from `best`, in the order of parameters and values."""
    pairs: tuple[Change, ...]
    """Changes of exactly two parameters from `best`, in the same order."""
    predicted: bool = False
    """True if the times are predicted and not measured."""


def sensitivity(title: str, best: Point, points: Iterable[Point], *, predicted: bool = False) -> Sensitivity:
    """Return those of `points` that differ from `best` in one or two parameters and have a finite time, as changes."""
    single, pairs = list[Change](), list[Change]()
    for point in points:
        names = tuple(name for name, value in best.config.items() if point.config[name] != value)
        if len(names) in (1, 2) and math.isfinite(point.us):
            before, after = (tuple(config[name] for name in names) for config in (best.config, point.config))
            (single if len(names) == 1 else pairs).append(Change(names, before, after, point.us, point.us / best.us))
    order = list(best.config)

    def place(change: Change) -> tuple[list[int], tuple[int, ...]]:
        return [order.index(name) for name in change.names], change.after

    return Sensitivity(
        title, dict(best.config), best.us, tuple(sorted(single, key=place)), tuple(sorted(pairs, key=place)), predicted
    )


def neighbours(best: Config, members: Sequence[Config]) -> list[int]:
    """Return the indices of the members that differ from `best` in exactly one parameter."""
    return [
        place for place, config in enumerate(members) if sum(config[name] != value for name, value in best.items()) == 1
    ]
