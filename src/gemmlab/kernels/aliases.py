"""Records of earlier versions, with the current ids of kernels that have been renamed since."""

from __future__ import annotations

import os
from dataclasses import replace

from gemmlab.core.records import Record, Result, load_record
from gemmlab.kernels.catalog import current_id

_HEADS = ("kernel:", "baseline:", "")
"""Prefixes of a kernel's id in the name of a contestant."""


def read_record(path: str | os.PathLike[str], *, notice: bool = True) -> Record:
    """Return the record in a file, with current ids of kernels. Raises `RecordError`; `notice` as in `current_id`."""
    return with_current_ids(load_record(path), notice=notice)


def with_current_ids(record: Record, *, notice: bool) -> Record:
    """Return the record with the current ids of all kernels in it; `notice` as in `current_id`."""
    return replace(record, results=tuple(_with_current_id(result, notice=notice) for result in record.results))


def current_contestant(name: str, *, notice: bool) -> str:
    """Return a contestant's name with the kernel's current id: `kernel:new[BM=32]` for `kernel:old[BM=32]`.

    Other names are returned unchanged; `notice` as in `current_id`.
    """
    head = next(head for head in _HEADS if name.startswith(head))
    kernel, bracket, config = name.removeprefix(head).partition("[")
    return f"{head}{current_id(kernel, notice=notice)}{bracket}{config}"


def _with_current_id(result: Result, *, notice: bool) -> Result:
    contestant = current_contestant(result.contestant, notice=notice)
    if contestant == result.contestant:
        return result
    facts = dict(result.facts)
    if isinstance(facts.get("name"), str):
        facts["name"] = current_id(facts["name"], notice=notice)
    return replace(result, contestant=contestant, facts=facts)
