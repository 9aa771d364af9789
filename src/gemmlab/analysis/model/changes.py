"""Error of the model for changes: predicted and measured ratio of the times of two configurations of one kernel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from gemmlab.analysis.model.model_record import Case, grouped

LEAST = 1.05
"""Least measured ratio; pairs whose times differ by less are left out."""


@dataclass(frozen=True, slots=True)
class Change:
    """Two configurations of one kernel at one size; the slower one took more time in the measurement."""

    slower: Case
    faster: Case

    @property
    def measured(self) -> float:
        """The measured time of `slower` divided by that of `faster`."""
        return self.slower.measured_us / self.faster.measured_us

    @property
    def predicted(self) -> float:
        """The predicted time of `slower` divided by that of `faster`."""
        return self.slower.predicted_us / self.faster.predicted_us

    @property
    def right(self) -> bool:
        """True if `faster` is also predicted to be faster."""
        return self.predicted > 1.0

    @property
    def error(self) -> float:
        """Relative error of the predicted ratio."""
        return abs(self.predicted / self.measured - 1)


def changes(cases: Iterable[Case], least: float = LEAST) -> list[Change]:
    """Return all pairs of configurations of a kernel at one size whose times differ by the factor `least` or more."""
    found = []
    for group in grouped(cases, lambda case: f"{case.kernel} {case.size}").values():
        for pair in combinations(group, 2):
            faster, slower = sorted(pair, key=lambda case: case.measured_us)
            if slower.measured_us / faster.measured_us >= least:
                found.append(Change(slower, faster))
    return found


def sign_rate(found: Iterable[Change]) -> float:
    """Return the fraction of changes that are predicted `right`. There must be at least one."""
    signs = [change.right for change in found]
    return sum(signs) / len(signs)


def ratio_error(found: Iterable[Change]) -> float:
    """Return the median relative error of the predicted ratios. There must be at least one."""
    return median(change.error for change in found)
