"""What a measurement leaves behind: dataclasses that travel to JSON and back, with every raw sample.

Schema `gemmlab.record/1`. Later versions may add fields with defaults; a change of meaning raises the number.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import types
import typing
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from gemmlab.core.errors import RecordError
from gemmlab.core.files import replace_file

SCHEMA = "gemmlab.record/1"

Facts = Mapping[str, Any]
"""JSON values by name."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One turn of one contestant: the median call, and the calls it is the median of."""

    process: int
    round: int
    time_us: float
    """Median time of one call over the turn, microseconds."""
    calls: int
    """Calls timed in the turn; `raw_us` keeps at most `method.raw_limit` times, evenly chosen."""
    inner: int
    """Calls timed together (their time divided) where one call is too short for the clock."""
    raw_us: tuple[float, ...]
    clock_mhz: float | None = None
    """The device's own clock right after the turn; `None` where it does not tell."""
    memory_mhz: float | None = None
    throttle: tuple[str, ...] = ()
    """What held the clock back at that moment."""


@dataclass(frozen=True, slots=True)
class Result:
    """Every sample of one contestant on one problem with one thread count."""

    contestant: str
    problem: Facts
    """`Problem.to_json()`."""
    label: str
    flops: int
    threads: int
    facts: Facts = field(default_factory=dict)
    """Library, version, core type, thread runtime, threads used, file name; of our own code target, compiler, digest;
    where a device counted, `counters` by name and `hazards`."""
    samples: tuple[Sample, ...] = ()
    verified: bool | None = None
    """`None`: not compared with the reference."""
    max_error_ratio: float | None = None
    """Largest error over its tolerance; above 1 is wrong, infinite where the classes of numbers differ."""
    notes: tuple[str, ...] = ()
    reference_us: float | None = None
    """What the float64 reference took on the CPU, its error bound included; `None`: not computed."""
    bytes: int = 0
    """What an execution must read and write; 0 where nobody said."""


@dataclass(frozen=True, slots=True)
class Method:
    """How the samples were taken."""

    rounds: int
    processes: int
    min_time_us: float
    """A turn repeats the call for at least this long."""
    warm_up_us: float
    """Unmeasured calls before a turn, at least one."""
    inner_us: float
    """Calls shorter than this are timed in batches that last it."""
    raw_limit: int
    interleaved: bool
    seed: int
    notes: tuple[str, ...] = ()
    mode: str = "warm"
    """State of the caches before a call: `"warm"`, as the last one left them, or `"cold"`, written over."""


@dataclass(frozen=True, slots=True)
class Record:
    """One run of a measuring command."""

    kind: Literal["bench", "climb", "check", "cache", "count", "profile"]
    op: str
    environment: Facts
    device: Facts
    method: Method | None
    results: tuple[Result, ...]
    notes: tuple[str, ...] = ()


def to_json(record: Record) -> dict[str, Any]:
    """The record as JSON values, `schema` first."""
    return {"schema": SCHEMA, **_encode(record)}


def from_json(data: object) -> Record:
    """Inverse of `to_json`. Raises `RecordError` that names what is missing or malformed, or takes no time."""
    if not isinstance(data, dict) or not isinstance(data.get("schema"), str):
        raise RecordError("not a gemmlab record: no schema")
    family, _, version = data["schema"].partition("/")
    if family != "gemmlab.record" or not re.fullmatch(r"[1-9]\d{0,5}", version):
        raise RecordError(f"not a gemmlab record: schema {data['schema'][:60]!r}")
    if int(version) > int(SCHEMA.partition("/")[2]):
        raise RecordError(f"written by a newer gemmlab: schema {data['schema']}, this version reads up to {SCHEMA}")
    record = _decode(Record, {key: value for key, value in data.items() if key != "schema"}, "record")
    assert isinstance(record, Record)  # noqa: S101 - narrows the type
    require_times(record)
    return record


def require_times(record: Record) -> None:
    """`RecordError` with contestant and size for a sample whose time is not a positive number."""
    for result in record.results:
        for sample in result.samples:
            if not 0 < sample.time_us < math.inf:
                # Names may hold what steers a terminal.
                where = f"{result.contestant[:60]!r} at {result.label[:60]!r}"
                raise RecordError(f"{where}: a time of {sample.time_us:g} µs is not a positive number")


def save_record(record: Record, path: str | os.PathLike[str]) -> None:
    """Write atomically: readers see the old file or the whole new one. Raises `RecordError`."""
    target = Path(path)
    text = json.dumps(to_json(record), indent=1, allow_nan=False) + "\n"
    try:
        replace_file(target, text.encode())
    except OSError as error:
        raise RecordError(f"cannot write the record {target}: {error.strerror or error}") from error


def load_record(path: str | os.PathLike[str]) -> Record:
    """Read a record. Raises `RecordError` for an unreadable, malformed or newer file."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"cannot read the record {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} is not JSON: {error}") from error
    try:
        return from_json(data)
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error


def _encode(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: _encode(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _decode(kind: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(typing.cast("type", kind), value, where)
    if origin is tuple:
        if isinstance(value, list):
            return tuple(_decode(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    elif origin is types.UnionType:
        return None if value is None else _decode(arguments[0], value, where)
    elif origin is Literal:
        if value in arguments:
            return value
    elif origin is Mapping:
        if isinstance(value, dict):
            return value
    elif kind is float:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            with suppress(OverflowError):
                return float(value)
        if value in ("inf", "-inf", "nan"):
            return float(value)
    elif isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise RecordError(f"{where} is malformed: {str(value)[:60]!r}")


def _decode_dataclass(kind: type, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise RecordError(f"{where} is malformed: an object is needed")
    arguments = {}
    for item in dataclasses.fields(kind):
        if item.name in value:
            arguments[item.name] = _decode(_hints(kind)[item.name], value[item.name], f"{where}.{item.name}")
        elif item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
            raise RecordError(f"{where}.{item.name} is missing")
    return kind(**arguments)
