"""Read the records that blocks are made from; each is read once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.core.records import Record, Result
from gemmlab.kernels.aliases import read_record
from gemmlab.kernels.catalog import find_kernel

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
CPU = "cpu-intel-6-167"
"""The folder of the processor whose records the pages show; `make results` writes to that of its own processor."""


@cache
def load(name: str) -> Record | None:
    """Return a record such as `"h200/gemm.json"`; `None` if it has not been made yet.

    If `"h200/gemm-later.json"` exists, the results of its rungs replace those of the same rungs and sizes, or are
    added.
    """
    path = RESULTS / name
    if not path.exists():
        return None
    record = read_record(path, notice=False)
    later = path.with_name(f"{path.stem}-later.json")
    if not later.exists():
        return record
    found = {_key(one): one for one in read_record(later, notice=False).results if one.facts.get("role") == "rung"}
    kept = [found.pop(_key(one), one) for one in record.results]
    return replace(record, results=(*kept, *found.values()))


def _key(result: Result) -> tuple[str, str]:
    return result.contestant, result.label


def medians(record: Record) -> dict[str, dict[str, float]]:
    """Return median microseconds by size and contestant; probes of the peak are left out."""
    times: dict[str, dict[str, float]] = {}
    for result in record.results:
        if result.samples and result.facts.get("role") != "peak":
            found = times.setdefault(result.label, {})
            found[result.contestant] = median(sample.time_us for sample in result.samples)
    return times


def load_json(name: str, schema: str) -> dict[str, Any] | None:
    """Return a record with a schema of its own; `None` if it has not been made yet.

    Raises `ValueError` for one of another schema than `schema`.
    """
    path = RESULTS / name
    if not path.exists():
        return None
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if record.get("schema") != schema:
        raise ValueError(f"{path}: schema {record.get('schema')!r}, not {schema}")
    return record


def matching(pattern: str) -> list[str]:
    """Return the names of the records that match a pattern such as `"h200/configs*.json"`."""
    return sorted(str(path.relative_to(RESULTS)) for path in RESULTS.glob(pattern))


def by_processor(name: str) -> list[tuple[str, Record]]:
    """Return the records of this name of all CPUs, such as `"gemm.json"`, each with its folder."""
    found = [(each.partition("/")[0], load(each)) for each in matching(f"cpu-*/{name}")]
    return [(folder, record) for folder, record in found if record is not None]


def with_defaults(kernel: str, config: Mapping[str, int]) -> dict[str, int]:
    """Return a recorded configuration, with defaults for parameters that its kernel has gained since; unchanged for a
    kernel that the catalog lacks.
    """
    try:
        return {**find_kernel(kernel).params, **config}
    except UsageError:  # a library, or a kernel that is no longer shipped
        return dict(config)


def from_record(name: str, block: Callable[[Record], str]) -> Callable[[], str]:
    """Return a function that makes a block from the record `name`, or a sentence if there is no such record yet."""

    def text() -> str:
        record = load(name)
        return f"*Not measured yet: there is no record benchmarks/results/{name}.*" if record is None else block(record)

    return text


def if_recorded(name: str, block: Callable[[Record], str]) -> Callable[[], str]:
    """Return a function that makes a block from the record `name`; an empty one if there is no such record yet."""

    def text() -> str:
        record = load(name)
        return "" if record is None else block(record)

    return text


def if_there(name: str, schema: str, block: Callable[[dict[str, Any]], str]) -> Callable[[], str]:
    """Return a function that makes a block from a record with the schema `schema`, or a sentence if
    there is none yet.
    """

    def text() -> str:
        record = load_json(name, schema)
        return "*Not recorded yet.*" if record is None else block(record)

    return text
