"""The outcome of `gemmlab check`: reports and errors, as JSON or as a table with the wrong elements below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import typer

from gemmlab.cli.answer import print_json
from gemmlab.core.errors import GemmlabError, TimeLimitError

if TYPE_CHECKING:
    from gemmlab.verify.check import CheckReport

COLUMNS = (
    "padded: cases with elements between the end of a row and the next one (ld > extent). "
    "error/bound: largest error of an element, as a part of its bound; right up to 1. "
    "error/|c|/K: largest relative error, divided by the number of terms; the source articles test that it is "
    "below 1e-6, the verdict does not."
)
"""The meaning of some columns, printed below the table."""


@dataclass(slots=True)
class Checked:
    """Reports and errors so far."""

    reports: list[CheckReport] = field(default_factory=list)
    errors: dict[str, GemmlabError] = field(default_factory=dict)
    not_checked: Sequence[str] = ()
    """Names of the checks that were not started because the process had to end."""
    waiting: Sequence[str] = ()
    """Names of the checks after the running one."""
    running: str = ""
    so_far: str = ""
    """Progress of the running check, in words."""

    @property
    def passed(self) -> bool:
        return not (self.errors or self.not_checked) and all(report.passed for report in self.reports)

    @property
    def timed_out(self) -> bool:
        errors = any(isinstance(error, TimeLimitError) for error in self.errors.values())
        return errors or bool(self.not_checked) or any(report.timed_out for report in self.reports)

    def overdue(self, error: TimeLimitError) -> Checked:
        """Return the same with a timeout error for the running check, which cannot be interrupted: the process ends."""
        message = f"{self.so_far}; {error}" if self.so_far else str(error)
        errors = {**self.errors, self.running or "check": TimeLimitError(message)}
        return replace(self, errors=errors, not_checked=self.waiting)


def answer(checked: Checked, *, as_json: bool) -> None:
    if as_json:
        print_json({
            "passed": checked.passed, "timed_out": checked.timed_out,
            "reports": [report.to_json() for report in checked.reports],
            "errors": {name: str(error) for name, error in checked.errors.items()},
            "not_checked": [*checked.not_checked],
        })  # fmt: skip
    else:
        _show(checked)


def _show(checked: Checked) -> None:
    from rich.table import Table

    from gemmlab.cli.console import table_console

    for report in checked.reports:
        if not report.passed:
            typer.echo(f"{report.subject}: {report.verdict}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("kernel", "result", "cases", "padded", "threads", "error/bound", "error/|c|/K", "seconds"):
        table.add_column(heading, justify="left" if heading in ("kernel", "result") else "right")
    for report in checked.reports:
        measures = (f"{report.worst_ratio:.3f}", f"{report.source_error:.1e}", f"{report.seconds:.1f}")
        numbers = (str(report.cases), str(report.padded), str(report.threads), *measures)
        table.add_row(report.subject, report.verdict.kind.upper(), *numbers)
    for name, error in checked.errors.items():
        table.add_row(name, "STOPPED" if isinstance(error, TimeLimitError) else "ERROR", "", "", "", "", "", "")
    for name in checked.not_checked:
        table.add_row(name, "NOT RUN", "", "", "", "", "", "")
    table_console().print(table)
    if checked.reports:
        typer.echo(COLUMNS)
    for report in checked.reports:
        if not report.passed:
            typer.echo("\n" + report.details())
            continue
        for remark in report.remarks:
            typer.echo(f"{report.subject}: {remark.strip()}")
    for name, error in checked.errors.items():
        typer.echo(f"\n{name}: {error}")
    if checked.not_checked:
        typer.echo(f"\nNot checked, because the process had to end: {', '.join(checked.not_checked)}")
