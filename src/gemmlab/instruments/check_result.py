"""The result of a check of several kernels: their reports, and the errors of those that could not be checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gemmlab.core.errors import GemmlabError, TimeLimitError
from gemmlab.core.notebook_view import Display, View, grid
from gemmlab.core.tabular import Row, Tabular
from gemmlab.core.words import assignments
from gemmlab.verify.check_report import RIGHT, CheckReport


@dataclass(frozen=True, slots=True, repr=False)
class CheckResult(Display, Tabular):
    """The result of `gemmlab.check`."""

    reports: tuple[CheckReport, ...] = ()
    errors: Mapping[str, GemmlabError] = field(default_factory=dict)
    """Kernel -> the error that ended its check, such as a compiler's, or `UsageError` for an unknown parameter.

    A check that the time limit ended while it ran a case usually has a report instead (`CheckReport.time_limit`).
    """
    not_checked: tuple[str, ...] = ()
    """Names of the checks that were not started because the process had to end."""

    @property
    def passed(self) -> bool:
        """True if every kernel was checked in all cases and is right."""
        return not (self.errors or self.not_checked) and all(report.passed for report in self.reports)

    @property
    def timed_out(self) -> bool:
        """True if a time limit ended a check, or left checks that were not started."""
        errors = any(isinstance(error, TimeLimitError) for error in self.errors.values())
        return errors or bool(self.not_checked) or any(report.timed_out for report in self.reports)

    def rows(self) -> list[Row]:
        """Return a row for each kernel. `result` is on its results alone; `hazards` has the kinds of its hazards.

        `worst_ratio` is the largest error relative to its bound: right if at most 1.

        `source_error` is the largest error relative to its element, divided by the number of terms. Times are in
        seconds.
        """
        return [
            *(
                {
                    "kernel": report.subject, "result": report.result.upper(), "hazards": hazards(report),
                    "device": report.device, "config": assignments(report.config), "cases": report.cases,
                    "planned": report.planned, "padded": report.padded, "failures": len(report.failures),
                    "threads": report.threads, "worst_ratio": report.worst_ratio, "worst_problem": report.worst_problem,
                    "source_error": report.source_error, "seconds": report.seconds, "error": None,
                }
                for report in self.reports
            ),
            *({"kernel": name, "result": stopped(error), "error": str(error)} for name, error in self.errors.items()),
            *({"kernel": name, "result": NOT_RUN} for name in self.not_checked),
        ]  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "passed": self.passed, "timed_out": self.timed_out,
            "reports": [report.to_json() for report in self.reports],
            "errors": {name: str(error) for name, error in self.errors.items()},
            "not_checked": [*self.not_checked],
        }  # fmt: skip

    def _line(self) -> str:
        return "; ".join(
            f"{row['kernel']}: {', '.join(filter(None, [row['result'], row.get('hazards')]))}" for row in self.rows()
        )

    def _view(self) -> View:
        names = ("kernel", "result", "hazards", "device", "cases", "worst_ratio", "source_error", "seconds")
        rows = self.rows()
        cells = grid(
            ("kernel", "result", "hazards", "device", "cases", "error/bound", "error/|c|/K", "seconds"),
            ([row.get(name) for name in names] for row in rows),
            texts=range(4),
        )
        good = {report.subject for report in self.reports if report.passed}
        wrong = frozenset(
            (place, 1 + (row["result"] == RIGHT.upper()))
            for place, row in enumerate(rows) if row["kernel"] not in good
        )  # fmt: skip
        details = [(report.subject, report.explain()) for report in self.reports if not report.passed]
        details += [(name, str(error)) for name, error in self.errors.items()]
        badge = "passed" if self.passed else "not passed"
        verdicts = tuple(f"{report.subject}: {report.verdict}" for report in self.reports if not report.passed)
        return View(
            "check", badge, self.passed, verdicts, grids=(replace(cells, wrong=wrong),), folded=tuple(details)
        )  # fmt: skip

    def __str__(self) -> str:
        """Return the outcome of each kernel in words."""
        return "\n".join([
            *(report.explain() for report in self.reports),
            *(f"{name}: {error}" for name, error in self.errors.items()),
            *(f"{name}: not checked" for name in self.not_checked),
        ])  # fmt: skip


NOT_RUN = "NOT RUN"


def hazards(report: CheckReport) -> str:
    """Return the kinds of hazards in a report: `RACE`, `OUT OF BOUNDS, UNWRITTEN`; empty without any."""
    return ", ".join(report.hazard_kinds).upper()


def stopped(error: GemmlabError) -> str:
    """Return the verdict of a check that an error ended: `STOPPED` at a time limit, `ERROR` for any other."""
    return "STOPPED" if isinstance(error, TimeLimitError) else "ERROR"


@dataclass(slots=True)
class CheckState:
    """Reports and errors so far; another thread may read it at any time."""

    reports: list[CheckReport] = field(default_factory=list)
    errors: dict[str, GemmlabError] = field(default_factory=dict)
    waiting: Sequence[str] = ()
    """Names of the checks after the running one."""
    running: str = ""
    so_far: str = ""
    """Progress of the running check, in words."""

    def result(self) -> CheckResult:
        """Return the reports and errors so far."""
        return CheckResult(tuple(self.reports), dict(self.errors))

    def overdue(self, error: TimeLimitError) -> CheckResult:
        """Return the results so far, with a timeout error for the running check, which cannot be interrupted; the
        waiting ones are `not_checked`.
        """
        message = f"{self.so_far}; {error}" if self.so_far else str(error)
        errors = {**self.errors, self.running or "check": TimeLimitError(message)}
        return CheckResult(tuple(self.reports), errors, tuple(self.waiting))
