"""The last run of the whole suite (`make test-all`), in the words of the record that it leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from blocks.records import RESULTS

RECORD = "tests.json"
SCHEMA = "gemmlab.tests/1"


def last_run(record: Mapping[str, Any]) -> str:
    """Return a sentence. `ValueError` for what is no such record."""
    if record.get("schema") != SCHEMA:
        raise ValueError(f"{RECORD}: schema {record.get('schema')!r}, not {SCHEMA}")
    counts = ", ".join(f"{record[name]:,} {name}" for name in ("passed", "failed", "error", "skipped") if record[name])
    return (
        f"{counts} in {record['minutes']:.0f} minutes ({record['date']}, version {record['version']}, "
        f"{record['cores']} cores of {record['cpu']}, Python {record['python']})."
    )


def _block() -> str:
    path = RESULTS / RECORD
    return last_run(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else "*Not recorded yet.*"


BLOCKS: Mapping[str, Callable[[], str]] = {"suite": _block}
