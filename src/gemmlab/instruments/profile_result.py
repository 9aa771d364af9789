"""The result of a profile: the figures of each kernel, with stall reasons and advice."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gemmlab.analysis.findings import Finding
from gemmlab.analysis.stall_findings import stall_findings, waiting
from gemmlab.core.notebook_view import Display, View, grid
from gemmlab.core.records import Record
from gemmlab.core.tabular import Row, Tabular
from gemmlab.kernels.catalog import all_kernels, ladder
from gemmlab.observe.profile import Profile, Profiles


@dataclass(frozen=True, slots=True, repr=False)
class ProfileResult(Display, Tabular):
    """The result of `gemmlab.profile`."""

    profiles: Profiles
    record: Record | None = None
    """The record of this run; `None` for profiles that were loaded instead."""

    @property
    def wrong(self) -> list[str]:
        """A sentence for each wrong result; of counted kernels, also for each with a hazard."""
        results = [] if self.record is None else self.record.results
        return [f"{r.contestant} at {r.label}: {'; '.join(r.notes)}" for r in results if r.verified is False]

    def findings(self, one: Profile) -> tuple[Finding, ...]:
        """Return the findings, with advice, from the stall reasons of one of `profiles`, the costliest first."""
        kernel = next((kernel for kernel in all_kernels() if kernel.id == one.name), None)
        return stall_findings(one, kernel, ladder(self.profiles.op, "cuda"))

    def _line(self) -> str:
        wrong = f"; wrong: {len(self.wrong)}" if self.wrong else ""
        return (
            f"{self.profiles.op} on {self.profiles.device}; contestants and sizes: {len(self.profiles.profiles)}{wrong}"
        )

    def _view(self) -> View:
        rows = []
        for one in self.profiles.profiles:
            stalls = [name for name in one.stall_cycles if name != "selected"][:_MOST_STALLS]
            findings = self.findings(one)
            rows.append((one.name, one.size, one.origin, one.first("smsp__inst_executed.sum"), ", ".join(stalls),
                         findings[0].text if findings else "; ".join(one.notes)))  # fmt: skip
        names = ("contestant", "size", "by", "instructions", "longest stalls", "first finding")
        table = grid(names, rows, texts=(0, 1, 2, 4, 5))
        return View(f"{self.profiles.op} on {self.profiles.device}", "wrong" if self.wrong else "", not self.wrong,
                    tuple(self.wrong), (table,), notes=self.profiles.notes)  # fmt: skip

    def rows(self) -> list[Row]:
        """Return a row for each contestant and size: its metrics by Nsight Compute's names, and counts."""
        return [
            {"contestant": one.name, "size": one.size, "origin": one.origin, "precision": one.precision,
             "notes": "; ".join(one.notes), **one.metrics, **one.counts}
            for one in self.profiles.profiles
        ]  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        whole = self.profiles
        return {
            **{name: getattr(whole, name) for name in ("op", "device", "arch", "profiler", "time_utc", "notes")},
            "profiles": [self._profile(one) for one in whole.profiles],
        }

    def _profile(self, one: Profile) -> dict[str, Any]:
        library = self.profiles.baseline(one)
        states = [{"stall": state.stall.key, **{name: getattr(state, name) for name in _MEASURED}}
                  for state in waiting(one)]  # fmt: skip
        return {
            **asdict(one), "baseline": None if library is None else library.contestant, "stalls": states,
            "findings": [asdict(finding) for finding in self.findings(one)],
        }  # fmt: skip


_MOST_STALLS = 3
_MEASURED = ("cycles", "share", "samples", "not_issued", "cost")
