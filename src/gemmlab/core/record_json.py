"""Encode records as JSON values and decode them: dataclasses by their fields, samples by columns.

In JSON a result's samples are one object with a list for each field (`{"process": [0, 0], "round": [0, 1], "time_us":
[15.4, 15.5]}`). A field that is empty in all samples is left out. Schema 1 had one object per sample; it can be read,
too.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from statistics import median
from typing import Any, Literal

from gemmlab.core.errors import RecordError

_COLUMNS = "samples"
_MEDIAN = "median_us"
"""Key of a result's median time, written for readers and ignored when decoding."""
_DIGITS = 7
"""Significant digits of times in a summary: errors are below a part in a million."""
_ROWS = "results"


def encode(value: Any) -> Any:
    """Return a dataclass, or a value of one of its fields, as JSON values. Infinities and NaN become text.

    A result with samples also gets its median time, for readers.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        found = {item.name: encode(getattr(value, item.name)) for item in dataclasses.fields(value)}
        return _by_columns(found) if _COLUMNS in found else found
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def decode(kind: Any, value: Any, where: str) -> Any:
    """Return a value of type `kind` from JSON values. Names that are no field of a dataclass are ignored.

    Raises `RecordError` that names the place of a malformed or missing value; `where` is the place of `value`.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(typing.cast("type", kind), value, where)
    if origin is tuple:
        if isinstance(value, Mapping) and dataclasses.is_dataclass(arguments[0]):
            value = _by_rows(value, where)
        if isinstance(value, list):
            return tuple(decode(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    elif origin is types.UnionType:
        return None if value is None else decode(arguments[0], value, where)
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
            arguments[item.name] = decode(_hints(kind)[item.name], value[item.name], f"{where}.{item.name}")
        elif item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
            raise RecordError(f"{where}.{item.name} is missing")
    return kind(**arguments)


def _by_columns(result: dict[str, Any]) -> dict[str, Any]:
    samples = result[_COLUMNS]
    if not samples:
        return result
    columns = {name: [sample[name] for sample in samples] for name in samples[0]}
    times = [time for time in columns["time_us"] if isinstance(time, (int, float))]
    filled = {name: column for name, column in columns.items() if any(item not in (None, []) for item in column)}
    return {**result, _COLUMNS: filled, **({_MEDIAN: encode(median(times))} if times else {})}


def _by_rows(columns: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    lengths = {len(column) if isinstance(column, list) else -1 for column in columns.values()}
    if len(lengths) > 1 or -1 in lengths:
        raise RecordError(f"{where} is malformed: lists of one length are needed")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def summary(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an encoded record without raw times (`raw_us`); times of turns and medians have seven digits."""
    return {**data, _ROWS: [_summarised(result) for result in data[_ROWS]]}


def _summarised(result: Mapping[str, Any]) -> dict[str, Any]:
    short = dict(result)
    if _MEDIAN in short:
        short[_MEDIAN] = _shorter(short[_MEDIAN])
    if isinstance(columns := short[_COLUMNS], Mapping):
        summary = {name: column for name, column in columns.items() if name != "raw_us"}
        short[_COLUMNS] = {**summary, "time_us": [_shorter(time) for time in summary["time_us"]]}
    return short


def _shorter(number: Any) -> Any:
    return float(f"{number:.{_DIGITS}g}") if isinstance(number, float) else number


def text(data: Mapping[str, Any]) -> str:
    """Return an encoded record as JSON text with one line for each result and for each other field."""
    lines = [f" {json.dumps(name)}: {_dumps(value)}" for name, value in data.items() if name != _ROWS]
    rows: Sequence[Any] = data[_ROWS]
    listed = ",\n".join(f"  {_dumps(row)}" for row in rows)
    lines.append(f' "{_ROWS}": [\n{listed}\n ]' if rows else f' "{_ROWS}": []')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _dumps(value: Any) -> str:
    return json.dumps(value, allow_nan=False)
