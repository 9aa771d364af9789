"""A collector of the outcomes of cases, from which the report of a check is made.

A case is one run at one problem, the sizes and factors of an operation.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from gemmlab.core.errors import TimeLimitError
from gemmlab.core.hazard import Hazard
from gemmlab.core.precision import FLOAT32
from gemmlab.core.words import counted
from gemmlab.ops.op import Problem
from gemmlab.verify.check_report import CheckReport, Failure
from gemmlab.verify.condition import Condition
from gemmlab.verify.elementwise import Mismatch
from gemmlab.verify.guards import Violation
from gemmlab.verify.verdict import PASSED, SOLVED, STOPPED, Faults, Verdict, verdict_of

MOST_FAILURES = 8
"""Checking stops after this many failing cases: they suffice for a diagnosis, and a faulty kernel may do harm."""
Progress = Callable[[int, int], None]
"""Function called with (cases done, cases in all)."""


class Tally:
    """A collector of case outcomes, from which a report is made."""

    def __init__(
        self, subject: str, device: str, config: Mapping[str, int], threads: int, seed: int,
        refused: Mapping[str, int] | None = None, traits: Iterable[str] = (), precision: str = FLOAT32,
    ) -> None:  # fmt: skip
        self._precision = precision
        self._about = (subject, device, dict(config), threads, seed)
        self._refused, self._traits = dict(refused or {}), tuple(traits)
        self._padded = 0
        self._started = time.perf_counter()
        self._failures: list[Failure] = []
        self._near: list[Failure] = []
        """The failures, except those at rows far apart (`far_rows`)."""
        self._failing: list[Problem] = []
        """The problems of `_near` with a wrong result, a forbidden write or a hazard."""
        self._wrong: list[Problem] = []
        self._passing: list[Problem] = []
        self._far: list[tuple[str, Problem, tuple[Hazard, ...]]] = []
        self._cases = 0
        self._worst = (0.0, "")
        self._source = (0.0, "")
        self._stopped: tuple[str, Mapping[str, int]] = ("", {})
        self._stray: Counter[str] = Counter()
        self.criteria: tuple[str, ...] = ()
        """The criteria of an exercise, each with what was counted."""

    @property
    def enough(self) -> bool:
        """True if there are `MOST_FAILURES` failures or more."""
        return len(self._failures) >= MOST_FAILURES

    @property
    def failed(self) -> bool:
        """True if any case has failed."""
        return bool(self._failures)

    @property
    def unsound(self) -> bool:
        """True if a case had a wrong result, a forbidden write or a hazard, rows far apart (`far_rows`) aside."""
        faults = self.faults()
        return bool(faults.wrong or faults.outside or faults.hazards)

    def ratio(self, problem: str, worst_ratio: float, source_error: float) -> None:
        """Record the error ratios of one case (`elementwise.Comparison`); the largest of all cases are reported."""
        self._worst = max(self._worst, (worst_ratio, problem))
        self._source = max(self._source, (source_error, problem))

    def strays(self, reads: Iterable[str]) -> None:
        """Record, in words, the reads of unwritten memory in one case that reach none of its results."""
        self._stray.update(dict.fromkeys(reads, 1))

    def case(
        self, problem: Problem, mismatches: Iterable[Mismatch | None], violations: Iterable[Violation],
        notes: Iterable[str] = (), suffix: str = "", *, padded: bool = False, hazards: Iterable[Hazard] = (),
        claims: Iterable[str] = (), far: str = "",
    ) -> None:  # fmt: skip
        """Record one case. It has failed if it has a mismatch, a violation, a note, a hazard or a claim.

        `mismatches` has `None` for an output without one. `claims` are statements of the kernel's file that do not
        hold. `suffix` is appended to the problem's label. `padded`: a leading dimension was longer than a row. `far`:
        the operand whose rows were far apart (`far_rows`), else empty.
        """
        self._cases += 1
        self._padded += padded
        wrong, changed = tuple(m for m in mismatches if m), tuple(violations)
        others = tuple(notes), tuple(hazards), tuple(claims)
        if not (wrong or changed or any(others)):
            self._passing += [] if far else [problem]
            return
        subject, _, config, threads, _ = self._about
        label = problem.label + suffix
        self._failures.append(Failure(subject, config, threads, label, problem.to_json(), wrong, changed, *others))
        if far:
            self._far.append((far, problem, others[1]))
        else:
            self._near.append(self._failures[-1])
            self._wrong += [problem] if wrong else []
            self._failing += [problem] if wrong or changed or others[1] else []

    def faults(self) -> Faults:
        """Return the faults so far, from which `verdict_of` makes a verdict."""
        near = self._near
        return Faults(
            cases=self._cases, wrong=self._wrong, failing=self._failing, passing=self._passing,
            outside=[violation.explain() for failure in near for violation in failure.violations],
            hazards=[failure.hazards for failure in near if failure.hazards], far=self._far,
            claims=[claim for failure in self._failures for claim in failure.claims],
            others=[note for failure in near for note in failure.notes],
        )  # fmt: skip

    def stop(self, problem: str, planned: int, error: TimeLimitError) -> None:
        """Record that the time limit passed while the case at `problem` ran, or before it began."""
        so_far = f"{self._cases} of {counted(planned, 'case')} checked when the time was over"
        self._stopped = f"{so_far}, in {problem}: {error}", error.progress

    def report(
        self, planned: int, conditions: Sequence[Condition] | None = None, *, probed: bool = False
    ) -> CheckReport:
        """Return the report on the cases so far, of `planned` in all. `conditions`, `probed`: as for `verdict_of`."""
        good = Verdict(SOLVED if self.criteria else PASSED, "")
        verdict = verdict_of(self.faults(), conditions, probed=probed) if self._failures else good
        if not self._failures and self._stopped[0]:
            verdict = Verdict(STOPPED, "")
        seconds = time.perf_counter() - self._started
        return CheckReport(
            *self._about,
            self._cases,
            planned,
            tuple(self._failures),
            *self._worst,
            *self._source,
            seconds,
            self._refused,
            self._padded,
            self._traits,
            self._stopped[0],
            verdict,
            self._stopped[1],
            dict(self._stray),
            self._precision,
            criteria=self.criteria,
        )
