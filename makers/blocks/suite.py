"""The last run of the whole suite (`make test-all`), in the words of the record that it leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from blocks.records import load_json

RECORD = "tests.json"
SCHEMA = "gemmlab.tests/1"


def last_run(record: Mapping[str, Any]) -> str:
    """Return the sentence."""
    counts = ", ".join(f"{record[name]:,} {name}" for name in ("passed", "failed", "error", "skipped") if record[name])
    return (
        f"{counts} in {record['minutes']:.0f} minutes ({record['date']}, version {record['version']}, "
        f"{record['cores']} cores of {record['cpu']}, Python {record['python']})."
    )


def _block() -> str:
    record = load_json(RECORD, SCHEMA)
    return "*Not recorded yet.*" if record is None else last_run(record)


BLOCKS: Mapping[str, Callable[[], str]] = {"suite": _block}
