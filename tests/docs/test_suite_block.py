"""The sentence on the last run of the whole suite: what the record says."""

from __future__ import annotations

from typing import Any

from blocks.suite import SCHEMA, last_run

RECORD: dict[str, Any] = {
    "schema": SCHEMA, "date": "2026-11-22", "version": "0.1.0", "python": "3.12", "cpu": "a CPU", "cores": 2,
    "minutes": 24.6, "passed": 7850, "failed": 0, "error": 0, "skipped": 287,
}  # fmt: skip


def test_the_sentence_has_the_numbers_of_the_record() -> None:
    text = last_run(RECORD)
    assert text.startswith(
        "7,850 passed, 287 skipped in 25 minutes (2026-11-22, version 0.1.0, 2 cores of a CPU, Python 3.12)"
    )
    assert "7,850 passed, 3 failed, 1 error, 287" in last_run({**RECORD, "failed": 3, "error": 1})
