"""Recorded spaces, and a bench that replays them on a simulated clock, so that searches are compared without a GPU.

A turn is one of the recorded turns of its configuration, drawn at random. If the configuration has fewer than three,
the drawn time varies by the spread of configurations with more. As many compilers as in the record work at the same
time as the device. Configurations that share a program wait for one compilation. The time to start a measuring process
belongs to no configuration, so it is left out of all times.
"""

from __future__ import annotations

import gzip
import heapq
import json
import math
import random
import statistics
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from gemmlab.core.errors import RecordError
from gemmlab.tuning.journal import SCHEMA, Event, event_of
from gemmlab.tuning.outcomes import Build, Turn, Verdict
from gemmlab.tuning.space import Space, space_from

_FEW = 3
_START = 5.0
"""A verification or turn that took more than this many times the record's median includes the start of a measuring
process, or a pause of the machine. The median takes its place.
"""
_LEAST_SPREAD = 0.002


@dataclass(frozen=True, slots=True)
class Recorded:
    """All measurements of one configuration."""

    us: tuple[float, ...] = ()
    """The time of a call (`outcomes.Turn.us`) in each turn without a fault, microseconds."""
    fault: str = ""
    """The reason why the configuration cannot win; empty if it has a time."""
    wrong: bool = False
    """True if its verification failed."""
    build_s: float = 0.0
    verify_s: float = 0.0
    turn_s: float = 0.0
    """`build_s`, `verify_s` and `turn_s` are the seconds of compilation, of verification, and of a turn on average."""
    facts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordedSpace:
    """A space with the outcome of each configuration."""

    name: str
    """Kernel and problem."""
    space: Space
    outcomes: tuple[Recorded, ...]
    """One for each configuration, in the order of the space."""
    builders: int = 1
    """Number of compilers that worked at a time."""
    header: Mapping[str, Any] = field(default_factory=dict)
    """Kernel, device and other facts of the search: a journal's first line, or what another format has of it."""
    programs: tuple[int, ...] = ()
    """A number for each configuration; those with the same number share a program. Empty if each has its own."""

    @cached_property
    def best_us(self) -> float:
        """The least median time, in microseconds, among the configurations with the most turns.

        The fastest ones have the most, because they were measured again. Raises `RecordError` if none has a time.
        """
        most = max((len(one.us) for one in self.outcomes if not one.fault), default=0)
        if not most:
            raise RecordError(f"{self.name}: no configuration has a time")
        return min(statistics.median(one.us) for one in self.outcomes if len(one.us) == most and not one.fault)

    @cached_property
    def program_of(self) -> tuple[int, ...]:
        """The number of each configuration's program."""
        return self.programs or tuple(range(len(self.outcomes)))

    @cached_property
    def program_s(self) -> Mapping[int, float]:
        """Number of a program -> seconds of its compilation."""
        found = dict.fromkeys(self.program_of, 0.0)
        for program, one in zip(self.program_of, self.outcomes, strict=True):
            found[program] = max(found[program], one.build_s)
        return found

    @cached_property
    def build_s(self) -> tuple[float, ...]:
        """The seconds of compilation of each configuration. Those that share a program divide its seconds equally."""
        sharers = Counter(self.program_of)
        return tuple(self.program_s[program] / sharers[program] for program in self.program_of)

    @cached_property
    def exhaustive_s(self) -> float:
        """The seconds that it takes to compile, verify and time every configuration once.

        Compilers and device work at the same time, so the longer of both counts.
        """
        build = sum(self.program_s.values()) / self.builders
        return max(build, sum(one.verify_s + one.turn_s for one in self.outcomes))

    def median_us(self, place: int) -> float:
        """Return a configuration's median time in microseconds; infinite for one with a fault."""
        one = self.outcomes[place]
        return statistics.median(one.us) if one.us and not one.fault else math.inf

    @cached_property
    def spread(self) -> float:
        """The typical deviation of a turn from its configuration's median, as a fraction of the median.

        Configurations with at least `_FEW` turns count. The value is at least `_LEAST_SPREAD`.
        """
        found = [
            abs(us / statistics.median(one.us) - 1.0) for one in self.outcomes if len(one.us) >= _FEW for us in one.us
        ]
        return max(statistics.median(found), _LEAST_SPREAD) if found else _LEAST_SPREAD


class ReplayBench:
    """A bench that replays a recorded space, as `outcomes.Bench`. `seed` determines the turns that are drawn."""

    def __init__(self, record: RecordedSpace, seed: int = 0) -> None:
        self._record = record
        self._draw = random.Random(seed)  # noqa: S311 - noise, not a secret
        self.seconds = 0.0
        self.builders = record.builders
        self._free = [0.0] * record.builders
        self._ready: dict[int, float] = {}
        """Number of a program -> time at which its compilation ends."""

    def submit(self, places: Sequence[int]) -> None:
        for place in places:
            program = self._record.program_of[place]
            if program not in self._ready:
                begin = max(heapq.heappop(self._free), self.seconds)
                self._ready[program] = begin + self._record.program_s[program]
                heapq.heappush(self._free, self._ready[program])

    def soonest(self, places: Sequence[int], until: float) -> int:
        ready = {place: max(self.seconds, self._ready[self._record.program_of[place]]) for place in places}
        return min(places, key=lambda place: min(ready[place], until))

    def build(self, place: int, until: float) -> Build | None:
        ready = self._ready[self._record.program_of[place]]
        if ready > until:
            self.seconds = max(self.seconds, until)
            return None
        self.seconds = max(self.seconds, ready)
        one = self._record.outcomes[place]
        return Build(place, one.fault if one.fault and not one.wrong else "", one.build_s, one.facts)

    def verify(self, place: int) -> Verdict:
        one = self._record.outcomes[place]
        self.seconds += one.verify_s
        return Verdict(place, not one.wrong, one.fault, one.verify_s)

    def turn(self, place: int) -> Turn:
        one = self._record.outcomes[place]
        self.seconds += one.turn_s
        us = self._draw.choice(one.us)
        if len(one.us) < _FEW:
            us *= math.exp(self._draw.gauss(0.0, self._record.spread))
        return Turn(place, us, "", one.turn_s)


def read_space(path: Path) -> RecordedSpace:
    """Return the space that a journal recorded: the configurations in it, each with its outcome.

    The file is JSON Lines, compressed if its name ends in `.gz`. Raises `RecordError`.
    """
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        first, *lines = [json.loads(line) for line in data.splitlines()]
        if first["schema"] != SCHEMA:
            raise RecordError(f"{path}: schema {first['schema']!r}, not {SCHEMA}")
        names = tuple(first["names"])
        space = space_from(names, [dict(zip(names, line["config"], strict=True)) for line in lines])
        events = [event for line in lines if (event := event_of(line, space.places)) is not None]
        name = str(first.get("title", f"{first.get('kernel')} in {path.name}"))
        return RecordedSpace(name, space, _outcomes(events, len(space)), int(first.get("builders", 1)), first)
    except (OSError, EOFError, zlib.error) as error:
        raise RecordError(f"cannot read the recorded space {path}: {error}") from error
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise RecordError(f"{path} is no recorded space: {error}") from error


def _outcomes(events: Sequence[Event], count: int) -> tuple[Recorded, ...]:
    builds, verdicts, turns = dict[int, Build](), dict[int, Verdict](), dict[int, list[Turn]]()
    for event in events:
        match event.outcome:
            case Build() as build:
                builds[build.place] = build
            case Verdict() as verdict:
                verdicts[verdict.place] = verdict
            case Turn() as turn:
                turns.setdefault(turn.place, []).append(turn)
    usual_verdict_s = _usual([verdict.seconds for verdict in verdicts.values()])
    usual_turn_s = _usual([turn.seconds for own in turns.values() for turn in own])
    found = []
    for place in range(count):
        build, verdict = builds.get(place, Build(place)), verdicts.get(place, Verdict(place, right=True))
        own = turns.get(place, [])
        fault = build.fault or ("" if verdict.right else verdict.fault or "wrong result")
        fault = fault or next((turn.fault for turn in own if turn.fault), "" if own else "not timed")
        found.append(
            Recorded(
                tuple(turn.us for turn in own if not turn.fault), fault, not verdict.right, build.seconds,
                usual_verdict_s(verdict.seconds),
                statistics.fmean(usual_turn_s(turn.seconds) for turn in own) if own else 0.0, build.facts,
            )
        )  # fmt: skip
    return tuple(found)


def _usual(seconds: Sequence[float]) -> Callable[[float], float]:
    """Return a function that returns a duration, or the median of `seconds` for one that is far longer (`_START`)."""
    median = statistics.median(seconds) if seconds else 0.0
    return lambda one: one if one <= _START * median else median
