"""What Nsight Compute counted for each instruction of the probes and the rungs: in `benchmarks/results/h200`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gemmlab.core.counters import SiteCounters
from gemmlab.observe.ncu_report import METRICS

ARCH = "sm_90"
PATH = Path(__file__).parents[3] / "benchmarks" / "results" / "h200" / "counters.json"
ASYNC_PATH = PATH.with_name("async-counters.json")
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Row:
    """One instruction as Nsight Compute has it."""

    address: int
    """Bytes from the kernel's first instruction."""
    text: str
    values: Mapping[str, int]
    """By Nsight Compute's names; what it did not count is missing."""


def available() -> bool:
    """Whether there is a profile."""
    return PATH.exists()


@cache
def record() -> dict[str, Any]:
    """The whole file: device, versions, and `launches` by name."""
    found: dict[str, Any] = json.loads(PATH.read_text())
    return found


@cache
def async_record() -> dict[str, Any]:
    """The record of the asynchronous probes; each launch also has `code`, its digest, and what differed as `most`."""
    found: dict[str, Any] = json.loads(ASYNC_PATH.read_text())
    return found


def rows(launch: str) -> list[Row]:
    """The instructions of one launch; none where it was not profiled."""
    return _rows(record(), launch)


def async_rows(launch: str) -> list[Row]:
    """The instructions of one asynchronous probe, each with its least counts."""
    return _rows(async_record(), launch)


def _rows(found: Mapping[str, Any], launch: str) -> list[Row]:
    names = found["metrics"]
    return [
        Row(address, text, {name: value for name, value in zip(names, values, strict=True) if value is not None})
        for address, text, *values in found["launches"].get(launch, {"rows": []})["rows"]
    ]


def totals(launch: str) -> dict[str, float]:
    """Hardware counters of one launch; none where it was not profiled."""
    found: dict[str, float] = record()["launches"].get(launch, {"totals": {}})["totals"]
    return found


def disagreement(row: Row, site: SiteCounters | None) -> str:
    """What the emulator counted otherwise at one instruction; empty where all agrees."""
    if site is None:
        return f"{row.address:#x} {row.text}: not run" if row.values.get("inst_executed") else ""
    differ = [
        f"{name} {site.on_page(field)} instead of {row.values[name]}"
        for name, field in METRICS.items()
        if name in row.values and site.on_page(field) != row.values[name]
    ]
    return f"{row.address:#x} {site.text}: {', '.join(differ)}" if differ else ""
