"""The block on the last run of all tests (`make test-all`), from the record that it writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from blocks.records import if_there

RECORD = "tests.json"
SCHEMA = "gemmlab.tests/1"


def last_run(record: Mapping[str, Any]) -> str:
    """Return one sentence: the tests by outcome, the time, and where and when they ran."""
    counts = ", ".join(f"{record[name]:,} {name}" for name in ("passed", "failed", "error", "skipped") if record[name])
    return (
        f"{counts} in {record['minutes']:.0f} minutes ({record['date']}, version {record['version']}, "
        f"{record['cores']} cores of {record['cpu']}, Python {record['python']})."
    )


BLOCKS: Mapping[str, Callable[[], str]] = {"suite": if_there(RECORD, SCHEMA, last_run)}
