"""A time limit on a block of code, in seconds, which devices and long loops check.

The limit is a context variable (`contextvars`): every launch within the block sees it without an argument. It does not
apply to other threads.
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
    """A time limit and its deadline."""

    seconds: float
    """The duration from the beginning of the block to the deadline."""
    end: float
    """The deadline in seconds, on the clock of `time.monotonic`."""

    @property
    def left(self) -> float:
        """Seconds until the deadline; 0 when it has passed."""
        return max(0.0, self.end - time.monotonic())

    @property
    def passed(self) -> bool:
        """True if the deadline has passed."""
        return time.monotonic() >= self.end

    def error(self, what: str, how_far: str = "", **progress: int) -> TimeLimitError:
        """Return the error to raise because `what` was stopped: `how_far` is its progress in words, `progress` in
        numbers.
        """
        detail = f": {how_far}" if how_far else ""
        return TimeLimitError(f"{what}: stopped at the time limit of {self.seconds:g} s{detail}", progress)


def require_seconds(name: str, seconds: object) -> None:
    """Raise `UsageError` with `name` unless `seconds` is `None` or a positive number."""
    if seconds is not None and not (isinstance(seconds, int | float | np.number) and seconds > 0):
        raise UsageError(f"{name} is {seconds!r}; it must be a positive number of seconds")


@contextmanager
def time_limit(seconds: float | None) -> Iterator[TimeLimit | None]:
    """Set a limit for the block, unless an outer limit ends earlier; `None` sets none. Yield the limit that is in
    force.

    The limit stops nothing by itself: the code in the block must check it.
    """
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
    """Raise `TimeLimitError` if the current limit, if there is one, has passed; `what` is named as not begun."""
    limit = _current.get()
    if limit is not None and limit.passed:
        raise limit.error(what, "it was not begun")


def blocks_in_words(finished: int, blocks: int, instructions: int) -> str:
    """Return the progress of a launch in words: blocks finished of `blocks`, and instructions executed."""
    return f"{finished:,} of {blocks:,} blocks finished, {counted(instructions, 'instruction')} executed"
