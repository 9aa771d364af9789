"""The journal of a search: one line per outcome, on disk before the search continues.

After an interruption, the same search is run again with its journal. Outcomes in the journal are not measured again,
and the clock shows the recorded times. A strategy decides only by outcomes, so it reaches the point of interruption and
continues from there. A truncated last line is removed.
"""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeVar

from gemmlab.core.errors import RecordError, UsageError
from gemmlab.tuning.outcomes import Bench, Build, Turn, Verdict
from gemmlab.tuning.space import Space

SCHEMA = "gemmlab.tuning/1"
_ANEW = "`gemmlab tune --fresh` begins it anew"
Outcome = TypeVar("Outcome", Build, Verdict, Turn)
_KINDS: Mapping[str, type[Build | Verdict | Turn]] = {"build": Build, "verdict": Verdict, "turn": Turn}


@dataclass(frozen=True, slots=True)
class Event:
    """One outcome; `at` is the bench's clock after it, in seconds."""

    at: float
    outcome: Build | Verdict | Turn


class Journal:
    """An append-only file: a header line, then a line for each outcome. A context manager that closes the file.

    The file at `path` is continued, or begun if there is none; with `fresh`, it is emptied first. `events` has its
    outcomes so far. `header` identifies the search (`session.header_of`). Raises `UsageError` if the file cannot be
    written or, except on Windows, another process has it open as a journal, and `RecordError` if it is no journal of
    this search.
    """

    def __init__(self, path: Path, space: Space, header: Mapping[str, Any], *, fresh: bool = False) -> None:
        self._space, self._path = space, path
        self.events = list[Event]()
        with _write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file: IO[bytes] = path.open("a+b")
        try:
            _lock(self._file, path)
            if fresh:
                self._file.truncate(0)
            self._file.seek(0)
            data = self._file.read()
            whole = data[: data.rfind(b"\n") + 1]
            if len(whole) < len(data):
                self._file.truncate(len(whole))
            lines = whole.splitlines()
            if lines:
                self.events = _events(path, lines, space, header)
            else:
                self._write({"schema": SCHEMA, **header, "names": list(space.names)})
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def append(self, event: Event) -> None:
        """Write an outcome, and wait until it is on disk. Raises `UsageError` if that fails."""
        self.events.append(event)
        self._write(_line(event, self._space))

    def _write(self, values: Mapping[str, Any]) -> None:
        with _write_errors(self._path):
            self._file.write(json.dumps(values, separators=(",", ":")).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())


class JournaledBench:
    """A bench that returns the outcomes in a journal; others are measured on `bench` and appended to the journal."""

    def __init__(self, bench: Bench, journal: Journal) -> None:
        self._bench, self._journal = bench, journal
        self._seconds = 0.0
        self._ended = max((event.at for event in journal.events), default=0.0)
        self._began: float | None = None
        self._builds = {e.outcome.place: e for e in journal.events if isinstance(e.outcome, Build)}
        self._verdicts = {e.outcome.place: e for e in journal.events if isinstance(e.outcome, Verdict)}
        self._turns: dict[int, deque[Event]] = {}
        for event in journal.events:
            if isinstance(event.outcome, Turn):
                self._turns.setdefault(event.outcome.place, deque()).append(event)
        self._unsubmitted = list[int]()

    @property
    def seconds(self) -> float:
        """The recorded seconds while outcomes come from the journal, afterwards the seconds of all runs together."""
        if self._began is None:
            return self._seconds
        return self._ended + self._bench.seconds - self._began

    @property
    def builders(self) -> int:
        return self._bench.builders

    def submit(self, places: Sequence[int]) -> None:
        fresh = [place for place in places if place not in self._builds]
        if self._began is None:
            # Compilation would cost time already now, although the journal may have further outcomes.
            self._unsubmitted += fresh
        elif fresh:
            self._bench.submit(fresh)

    def soonest(self, places: Sequence[int], until: float) -> int:
        # The journal has the builds in the order in which the search took them.
        waiting = {*places}
        if (known := next((place for place in self._builds if place in waiting), None)) is not None:
            return known
        self._go_on()
        return self._bench.soonest(places, until - self.seconds + self._bench.seconds)

    def build(self, place: int, until: float) -> Build | None:
        if (event := self._builds.get(place)) is not None:
            return self._recorded(event)  # type: ignore[return-value]  # the table has builds alone
        self._go_on()
        found = self._bench.build(place, until - self.seconds + self._bench.seconds)
        return None if found is None else self._append(found)

    def verify(self, place: int) -> Verdict:
        if (event := self._verdicts.get(place)) is not None:
            return self._recorded(event)  # type: ignore[return-value]  # the table has verdicts alone
        self._go_on()
        return self._append(self._bench.verify(place))

    def turn(self, place: int) -> Turn:
        if waiting := self._turns.get(place):
            return self._recorded(waiting.popleft())  # type: ignore[return-value]  # the table has turns alone
        self._go_on()
        return self._append(self._bench.turn(place))

    def _recorded(self, event: Event) -> Build | Verdict | Turn:
        self._seconds = max(self._seconds, event.at)
        return event.outcome

    def _go_on(self) -> None:
        """Begin to measure: the journal has no outcome for a request. The clock runs from now on.

        Configurations that were submitted before, and are not compiled in the journal, are submitted to the bench.
        """
        if self._began is None:
            self._began = self._bench.seconds
            if self._unsubmitted:
                self._bench.submit(self._unsubmitted)

    def _append(self, outcome: Outcome) -> Outcome:
        self._journal.append(Event(self.seconds, outcome))
        return outcome


def _line(event: Event, space: Space) -> dict[str, Any]:
    kind = next(name for name, type_ in _KINDS.items() if type(event.outcome) is type_)
    values = {name: value for name, value in asdict(event.outcome).items() if name != "place" and value not in ("", {})}
    config = list(space.members[event.outcome.place])
    return {"kind": kind, "at": round(event.at, 6), "config": config, **values}


def _events(path: Path, lines: Sequence[bytes], space: Space, header: Mapping[str, Any]) -> list[Event]:
    try:
        first, *others = [json.loads(line) for line in lines]
        if first.get("schema") != SCHEMA:
            raise RecordError(f"{path}: schema {first.get('schema')!r}, not {SCHEMA}; {_ANEW}")
        expected = {**header, "names": list(space.names)}
        if differing := [name for name, value in expected.items() if first.get(name) != value]:
            raise RecordError(f"{path} is the journal of another search: its {differing[0]} differs; {_ANEW}")
        return list(filter(None, (event_of(line, space.places) for line in others)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"{path} is damaged or no journal of a search: {error}; {_ANEW}") from error


def event_of(line: Mapping[str, Any], places: Mapping[tuple[int, ...], int]) -> Event | None:
    """Return the event of a parsed line; `None` for a configuration that is not in `places`, the space.

    Raises `KeyError`, `TypeError` and `ValueError` for a malformed line.
    """
    place = places.get(tuple(line["config"]))
    if place is None:
        return None
    values = {name: value for name, value in line.items() if name not in ("kind", "at", "config")}
    return Event(float(line["at"]), _KINDS[line["kind"]](place=place, **values))


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"the search's journal {path} cannot be written: {error.strerror or error}") from error


def _lock(file: IO[bytes], path: Path) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UsageError(f"another process runs this search ({path}); wait for it, or end it") from error
