"""Tests that must not be skipped for want of something: `--needs torch,chromium` fails them."""

from __future__ import annotations

from typing import TypeVar

import pytest

NEEDS = "--needs"
Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def must_run(report: Report, config: pytest.Config) -> Report:
    """Return the report; a test that was skipped for a reason with a word of `--needs` in it has failed."""
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        words = [word for word in str(config.getoption(NEEDS)).split(",") if word]
        missing = [word for word in words if word.lower() in reason.lower()]
        if missing:
            report.outcome = "failed"
            report.longrepr = f"{', '.join(missing)} should be here ({NEEDS}): {reason}"
    return report
