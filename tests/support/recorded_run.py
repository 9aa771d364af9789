"""A run of the suite in a few figures: `--record-run FILE` writes them, docs/architecture.md shows the last."""

from __future__ import annotations

import json
import platform
import time
from pathlib import Path

import pytest

from gemmlab.core.hardware import cpu_info
from gemmlab.core.version import __version__

RECORD = "--record-run"


def write_run(reporter: pytest.TerminalReporter, started: float, path: Path) -> None:
    """Write the record of a run that began at `started` (seconds since the epoch)."""
    from blocks.suite import SCHEMA  # what reads the record, imported only where a run is recorded

    stats = reporter.stats
    counts = {name: len(stats.get(name, [])) for name in ("passed", "failed", "error", "skipped")}
    record = {
        "schema": SCHEMA, "date": time.strftime("%Y-%m-%d", time.gmtime(started)), "version": __version__,
        "python": platform.python_version(), "cpu": cpu_info().name, "cores": cpu_info().physical_cores,
        "minutes": round((time.time() - started) / 60, 1), **counts,
    }  # fmt: skip
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
