"""A limit in seconds on what is done within a block of code; devices and long loops ask for it.

The limit belongs to the context (`contextvars`): it reaches every launch beneath without being passed along, and
each thread has its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from gemmlab.core.errors import TimeLimitError, UsageError
from gemmlab.core.words import counted

_current: ContextVar[TimeLimit | None] = ContextVar("_current", default=None)


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """A moment by which something has to be done."""

    seconds: float
    """It was given, in all."""
    end: float
    """As `time.monotonic` tells it."""

    @property
    def left(self) -> float:
        """Seconds until then; 0 when it has passed."""
        return max(0.0, self.end - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.end

    def error(self, what: str, how_far: str = "", **progress: int) -> TimeLimitError:
        """The error to raise: what was stopped and how far it had come, in words and as numbers."""
        told = f": {how_far}" if how_far else ""
        return TimeLimitError(f"{what}: stopped at the time limit of {self.seconds:g} s{told}", progress)


def require_seconds(name: str, seconds: object) -> None:
    """`UsageError` that says `name` where it is neither `None` nor a positive number."""
    if seconds is not None and not (isinstance(seconds, int | float | np.number) and seconds > 0):
        raise UsageError(f"{name} is {seconds!r}; it is a positive number of seconds")


@contextmanager
def time_limit(seconds: float | None) -> Iterator[TimeLimit | None]:
    """Set a limit for the block; one that is set already and ends earlier stays. `None` sets none."""
    outer = _current.get()
    limit = outer
    if seconds is not None and (outer is None or time.monotonic() + seconds < outer.end):
        limit = TimeLimit(float(seconds), time.monotonic() + seconds)
    token = _current.set(limit)
    try:
        yield limit
    finally:
        _current.reset(token)


def current_limit() -> TimeLimit | None:
    """The limit that is set here."""
    return _current.get()


def require_time(what: str) -> None:
    """`TimeLimitError` that names `what` is about to begin, where the time is over."""
    limit = _current.get()
    if limit is not None and limit.passed:
        raise limit.error(what, "it was not begun")


def blocks_in_words(finished: int, blocks: int, instructions: int) -> str:
    """How far a grid came."""
    return f"{finished:,} of {blocks:,} blocks finished, {counted(instructions, 'instruction')} executed"
