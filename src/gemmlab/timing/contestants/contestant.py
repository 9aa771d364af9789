"""The interface of contestants inside a worker process: prepared once per problem, then timed in turns.

A turn is a warm-up and the timed calls after it. Contestants that are timed against each other take turns.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from typing import Any, Protocol

import numpy.typing as npt

from gemmlab.core.errors import GemmlabError
from gemmlab.timing.arena import Float32Array

MAX_CALLS = 20_000


class UnsupportedError(GemmlabError):
    """The contestant cannot do this problem; the message says why."""


@dataclass(frozen=True, slots=True)
class Work:
    """One problem with its operands in this process, as the bench describes it."""

    op: str
    problem: Mapping[str, Any]
    """The problem as `to_json` wrote it."""
    flops: int
    scalars: Mapping[str, Any]
    """Extents, leading dimensions and factors by name, as `Op.scalars` returns them."""
    flat: Mapping[str, Float32Array]
    """Operand name -> view of shape (words,), padding between rows included."""
    matrices: Mapping[str, Float32Array]
    """Operand name -> view of the same memory of shape (rows, cols)."""
    threads: int
    cold: bool = False
    """True if operands are flushed from this machine's caches before each timed call."""
    uploaded: dict[str, Any] = field(default_factory=dict)
    """Operand name -> device buffer, which all contestants of this process share; filled by the first `run`."""

    @property
    def before(self) -> Callable[[], None] | None:
        """The function to call, untimed, before each timed call: it flushes the operands. `None` for warm caches."""
        return self._flush if self.cold else None

    def _flush(self) -> None:
        from gemmlab.codegen.flush import flush

        for array in self.flat.values():
            flush(address_of(array), array.nbytes)

    @property
    def plain(self) -> bool:
        """True if alpha is 1 and beta is 0, so that C = op(A) op(B). Only for products."""
        return bool(self.scalars["alpha"] == 1 and self.scalars["beta"] == 0)


@dataclass(frozen=True, slots=True)
class Turn:
    """The measurements of one turn; times in microseconds."""

    time_us: float
    """The median time of a call."""
    calls: int
    """The number of measurements."""
    inner: int
    """The number of calls in a row in each measurement."""
    raw_us: list[float]
    """Some of the measurements, each divided by `inner`."""
    clock_mhz: float | None = None
    memory_mhz: float | None = None
    throttle: tuple[str, ...] = ()


class Prepared(Protocol):
    """A contestant ready for one problem."""

    def run(self) -> None:
        """Execute once, untimed, so that the outputs can be verified."""

    def turn(self, *, min_us: float, warm_us: float, inner_us: float, raw_limit: int) -> Turn:
        """Warm up for `warm_us`, then time calls for about `min_us`, the work beside them (copies) included.

        The time of a call is estimated from the warm-up. Calls shorter than `inner_us` are timed several at a time. At
        most `raw_limit` measurements are returned.
        """


class Contestant(Protocol):
    """An implementation of one or several operations that can be timed."""

    def prepare(self, work: Work) -> Prepared:
        """Set up one problem. Raises `UnsupportedError` when the contestant cannot do it."""

    def facts(self) -> dict[str, Any]:
        """Return what is known of library, version, core type, thread runtime and threads; all of it after a run."""


def time_calls(call: Callable[[], object], calls: int, inner: int) -> list[float]:
    """Return `calls` measurements of one call in microseconds, each the mean over `inner` calls in a row."""
    clock = time.perf_counter_ns
    times = [0] * calls
    if inner == 1:
        for index in range(calls):
            start = clock()
            call()
            times[index] = clock() - start
    else:
        for index in range(calls):
            start = clock()
            for _ in repeat(None, inner):
                call()
            times[index] = clock() - start
    return [value / inner / 1e3 for value in times]


@dataclass(frozen=True, slots=True)
class Calls:
    """A prepared contestant made of a callable and a `timer`, a function of (calls, inner).

    The timer returns `calls` measurements in microseconds, each the mean over `inner` calls in a row.
    """

    call: Callable[[], object]
    timer: Callable[[int, int], list[float]]
    before: Callable[[], None] | None = None
    """The function to call, untimed, before each timed call. With it, calls are timed one by one."""

    @classmethod
    def of(cls, call: Callable[[], object], before: Callable[[], None] | None = None) -> Calls:
        """Return a contestant whose `call` is timed with `time_calls`."""
        return cls(call, partial(time_calls, call), before)

    def run(self) -> None:
        self.call()

    def turn(self, *, min_us: float, warm_us: float, inner_us: float, raw_limit: int) -> Turn:
        """Take a turn as `Prepared.turn` says, with at least one call as a warm-up and at most `MAX_CALLS` timed ones.

        If `warm_us` is 0 and the first call lasts at least `min_us`, that call is the whole turn. `before` is not
        called for the warm-up.
        """
        started = time.perf_counter_ns()
        warm = self.timer(1, 1)
        if not warm_us and warm[0] >= min_us:
            return Turn(warm[0], 1, 1, warm)
        passed_us = cost_us = (time.perf_counter_ns() - started) / 1e3
        while sum(warm) < warm_us and passed_us < warm_us and len(warm) < MAX_CALLS:
            warm += self.timer(len(warm), 1)
            # Wall time per call: a timer may do more than the call, such as copies.
            before_us, passed_us = passed_us, (time.perf_counter_ns() - started) / 1e3
            cost_us = min(cost_us, 2 * (passed_us - before_us) / len(warm))
        estimate = max(1e-3, min(warm[-len(warm) // 2 :]))
        inner = 1 if estimate >= inner_us or self.before is not None else min(MAX_CALLS, math.ceil(inner_us / estimate))
        lasts_us = max(estimate, cost_us) if inner == 1 else estimate * inner
        calls = max(1, min(MAX_CALLS, math.ceil(min_us / lasts_us)))
        times = self.timer(calls, inner) if self.before is None else self._one_by_one(calls, self.before)
        sample = times[:: math.ceil(len(times) / raw_limit)]
        return Turn(statistics.median(times), calls, inner, sample)

    def _one_by_one(self, calls: int, before: Callable[[], None]) -> list[float]:
        times: list[float] = []
        for _ in repeat(None, calls):
            before()
            times += self.timer(1, 1)
        return times


def in_turn(calls: Sequence[Callable[[], object]]) -> Callable[[], object]:
    """Return a callable that calls all of `calls`, one after the other."""

    def call() -> None:
        for each in calls:
            each()

    return call


def call_for(library: str, op: str, calls: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    """Return the function in `calls` for operation `op`. Raises `UnsupportedError` if the library has none."""
    if op not in calls:
        raise UnsupportedError(f"{library} has no {op}")
    return calls[op]


def address_of(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])
