"""A time limit on a block of code, in seconds, which devices and long loops check.

The limit is a context variable (`contextvars`): every launch within the block sees it without an argument, and
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
    """A deadline."""

    seconds: float
    """The whole duration of the limit."""
    end: float
    """The deadline, on the clock of `time.monotonic`."""

    @property
    def left(self) -> float:
        """Seconds until the deadline; 0 when it has passed."""
        return max(0.0, self.end - time.monotonic())

    @property
    def passed(self) -> bool:
        """True if the deadline has passed."""
        return time.monotonic() >= self.end

    def error(self, what: str, how_far: str = "", **progress: int) -> TimeLimitError:
        """Return the error to raise: `what` was stopped, with its progress in words and as numbers."""
        detail = f": {how_far}" if how_far else ""
        return TimeLimitError(f"{what}: stopped at the time limit of {self.seconds:g} s{detail}", progress)


def require_seconds(name: str, seconds: object) -> None:
    """Raise `UsageError` with `name` when `seconds` is neither `None` nor a positive number."""
    if seconds is not None and not (isinstance(seconds, int | float | np.number) and seconds > 0):
        raise UsageError(f"{name} is {seconds!r}; it must be a positive number of seconds")


@contextmanager
def time_limit(seconds: float | None) -> Iterator[TimeLimit | None]:
    """Set a limit for the block, unless an outer limit ends earlier. `None` sets no new limit."""
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
    """Return the limit of the current context, `None` if there is none."""
    return _current.get()


def require_time(what: str) -> None:
    """Raise `TimeLimitError` if the time is over before `what` begins."""
    limit = _current.get()
    if limit is not None and limit.passed:
        raise limit.error(what, "it was not begun")


def blocks_in_words(finished: int, blocks: int, instructions: int) -> str:
    """Return the progress of a grid in words."""
    return f"{finished:,} of {blocks:,} blocks finished, {counted(instructions, 'instruction')} executed"
