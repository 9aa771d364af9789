"""Records of measurements: dataclasses with every raw sample, saved as JSON and loaded again.

A contestant is a measured kernel or library. In a round each contestant has at most one turn: a series of calls.
A record with raw times is saved as two files: `x.json`, a summary with the time of every turn, and `x.json.gz` with
the raw times as well. Each is a complete record that can be loaded alone. The schema is `gemmlab.record/2`; `/1` is
read too. Later versions may add fields with defaults; a change of meaning raises the number.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gemmlab.core import record_json
from gemmlab.core.errors import RecordError
from gemmlab.core.files import replace_file
from gemmlab.core.notebook_view import Display, View, grid
from gemmlab.core.numerals import plain
from gemmlab.core.stats import spread
from gemmlab.core.words import counted

SCHEMA = "gemmlab.record/2"
COMPRESSED = ".gz"
_MOST_BYTES = 1 << 30
"""Most bytes of an uncompressed record: a file that expands to more is refused before it fills the memory."""

Facts = Mapping[str, Any]
"""JSON values by name."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One turn of one contestant in a process and round: its median time of a call, and the times of single calls."""

    process: int
    round: int
    time_us: float
    """Median time of one call over the turn, microseconds."""
    calls: int
    """Measurements in the turn, each of `inner` calls; `raw_us` has at most `Method.raw_limit`, evenly chosen."""
    inner: int
    """Calls timed together as one, if a call is too short for the clock; a time is then divided by this number."""
    raw_us: tuple[float, ...] = ()
    """Times of single calls, microseconds; empty in a summary."""
    clock_mhz: float | None = None
    """The device's clock right after the turn; `None` if the device does not report it."""
    memory_mhz: float | None = None
    throttle: tuple[str, ...] = ()
    """Reasons that the device gives for a lowered clock right after the turn."""


@dataclass(frozen=True, slots=True, repr=False)
class Result(Display):
    """The samples, verdict and facts of one contestant on one problem with one thread count."""

    contestant: str
    problem: Facts
    """The problem, by `Problem.to_json()`."""
    label: str
    flops: int
    threads: int
    facts: Facts = field(default_factory=dict)
    """Facts such as library, version, core type, thread runtime, threads used, file name; for gemmlab's kernels target,
    compiler, digest; from a counting device `counters` by name, and `hazards`; with hazards also `right`, whether the
    result is right all the same (`None`: not compared).
    """
    samples: tuple[Sample, ...] = ()
    verified: bool | None = None
    """True if the result is right, False if it is wrong or the kernel has hazards; `None`: not compared with the
    reference.
    """
    max_error_ratio: float | None = None
    """Largest error divided by its tolerance, of elements whose reference and tolerance are finite: wrong above 1;
    infinite if such an element is NaN, or infinite and wrong. `None`: not compared.
    """
    notes: tuple[str, ...] = ()
    reference_us: float | None = None
    """Time of computing the float64 reference and its error bound on the CPU, microseconds; `None`: not computed."""
    bytes: int = 0
    """Least bytes that an execution must read and write; 0 if unknown."""

    @property
    def median_us(self) -> float | None:
        """Median, over the turns, of a turn's median time of one call, in microseconds; `None` if the contestant was
        not timed.
        """
        return spread([sample.time_us for sample in self.samples]).median if self.samples else None

    @property
    def outcome(self) -> str:
        """`PASS`; `FAIL` for a wrong result; with hazards also their number, as `right, 1 hazard`; empty if there are
        none and the result was not compared.
        """
        known = {True: "PASS", False: "FAIL", None: ""}
        hazards = len(self.facts.get("hazards", ()))
        if not hazards:
            return known[self.verified]
        word = {True: "right", False: "FAIL", None: "not verified"}[self.facts.get("right", False)]
        return f"{word}, {counted(hazards, 'hazard')}"

    def _line(self) -> str:
        time_us = self.median_us
        timed = "not timed" if time_us is None else f"{plain(time_us)} us in {len(self.samples)} turns"
        words = {"PASS": "right", "FAIL": "WRONG", "": "not verified"}
        verdict = words.get(self.outcome, self.outcome)
        return f"{self.contestant} at {self.label}, threads: {self.threads}: {timed}, {verdict}"

    def _cells(self) -> tuple[Any, ...]:
        """Return a row of a table: contestant, size, threads, median time, GFLOP/s, turns and verdict."""
        time_us = self.median_us
        speed = self.flops / time_us / 1e3 if time_us and self.flops else None
        return (self.contestant, self.label, self.threads, time_us, speed, len(self.samples), self.outcome)


@dataclass(frozen=True, slots=True)
class Method:
    """The settings with which the samples were taken."""

    rounds: int
    processes: int
    min_time_us: float
    """Least duration of a turn in microseconds: calls are repeated until it is reached."""
    warm_up_us: float
    """Duration in microseconds of the unmeasured calls before a turn; there is at least one call."""
    inner_us: float
    """Calls shorter than this number of microseconds are timed together, in batches that take at least as long."""
    raw_limit: int
    interleaved: bool
    seed: int
    notes: tuple[str, ...] = ()
    mode: str = "warm"
    """State of the caches before a call: `"warm"`, as the last call left them, or `"cold"`, flushed."""


@dataclass(frozen=True, slots=True, repr=False)
class Record(Display):
    """The record of one run of a command that measures. `method` is `None` if nothing was timed."""

    kind: Literal["bench", "climb", "check", "cache", "count", "profile"]
    op: str
    environment: Facts
    device: Facts
    method: Method | None
    results: tuple[Result, ...]
    notes: tuple[str, ...] = ()

    def _line(self) -> str:
        where = self.device.get("name") or self.device.get("id") or "an unknown device"
        date = str(self.environment.get("time_utc", ""))[:10]
        return f"{self.kind} of {self.op} on {where}{date and f', {date}'}; results: {len(self.results)}"

    def _view(self) -> View:
        names = ("contestant", "size", "threads", "median us", "GFLOP/s", "turns", "result")
        cells = (one._cells() for one in self.results)  # noqa: SLF001 - the same file's
        return View(self._line(), grids=(grid(names, cells, texts=(0, 1, 6)),), notes=self.notes)


def to_json(record: Record) -> dict[str, Any]:
    """Return the record as JSON values, `schema` first."""
    return {"schema": SCHEMA, **record_json.encode(record)}


def from_json(data: object) -> Record:
    """Return the record of JSON values, as `to_json` makes them.

    Raises `RecordError` for an unknown or newer schema, a missing or malformed field, or a time that is not positive
    and finite.
    """
    if not isinstance(data, dict) or not isinstance(data.get("schema"), str):
        raise RecordError("not a gemmlab record: no schema")
    family, _, version = data["schema"].partition("/")
    if family != "gemmlab.record" or not re.fullmatch(r"[1-9]\d{0,5}", version):
        raise RecordError(f"not a gemmlab record: schema {data['schema'][:60]!r}")
    if int(version) > int(SCHEMA.partition("/")[2]):
        raise RecordError(f"written by a newer gemmlab: schema {data['schema']}, this version reads up to {SCHEMA}")
    record = record_json.decode(Record, {key: value for key, value in data.items() if key != "schema"}, "record")
    assert isinstance(record, Record)  # noqa: S101 - narrows the type
    require_times(record)
    return record


def require_times(record: Record) -> None:
    """Raise `RecordError` with contestant and size for a sample whose time is not a positive finite number."""
    for result in record.results:
        for sample in result.samples:
            if not 0 < sample.time_us < math.inf:
                # `!r`: names may contain control characters of a terminal.
                where = f"{result.contestant[:60]!r} at {result.label[:60]!r}"
                raise RecordError(f"{where}: a time of {sample.time_us:g} µs is not a positive number")


def save_record(record: Record, path: str | os.PathLike[str]) -> None:
    """Write `x.json`, a summary, and if there are raw times `x.json.gz` with them, else remove an `x.json.gz`.

    For a `path` ending in `.gz` write that file alone, with the raw times. Each file is written atomically: readers see
    the old file or the whole new one. Raises `RecordError` if a file cannot be written.
    """
    target = Path(path)
    data = to_json(record)
    raw = any(sample.raw_us for result in record.results for sample in result.samples)
    try:
        if target.suffix == COMPRESSED:
            replace_file(target, _compressed(data))
            return
        if raw:
            replace_file(_beside(target), _compressed(data))
        replace_file(target, record_json.text(record_json.summary(data)).encode())
        if not raw:
            # A file of an earlier record has other times.
            _beside(target).unlink(missing_ok=True)
    except OSError as error:
        raise RecordError(f"cannot write the record {target}: {error.strerror or error}") from error


def load_record(path: str | os.PathLike[str]) -> Record:
    """Read a record from a file, `.json` or `.json.gz`. Raises `RecordError` if it is unreadable, malformed or
    newer.
    """
    source = Path(path)
    try:
        data = json.loads(_read(source))
    except (OSError, EOFError, zlib.error) as error:
        raise RecordError(f"cannot read the record {path}: {getattr(error, 'strerror', '') or error}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} is not JSON: {error}") from error
    try:
        return from_json(data)
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error


def _read(source: Path) -> str:
    if source.suffix != COMPRESSED:
        return source.read_text(encoding="utf-8")
    with gzip.open(source) as stream:
        data = stream.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise RecordError(f"{source}: larger than {_MOST_BYTES >> 20} MiB, the most for a record")
    return data.decode("utf-8")


def _beside(path: Path) -> Path:
    return path.with_name(path.name + COMPRESSED)


def _compressed(data: Mapping[str, Any]) -> bytes:
    # No time stamp: equal records give equal files.
    return gzip.compress(record_json.text(data).encode(), mtime=0)
