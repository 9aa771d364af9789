"""The outcome of a check: failing cases, and the report of all cases, in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gemmlab.core.hazard import Hazard
from gemmlab.core.hazard_cures import with_cures
from gemmlab.core.missing_barrier import lines_of
from gemmlab.core.notebook_view import Display, View
from gemmlab.core.precision import FLOAT32
from gemmlab.core.race_causes import leading_kind
from gemmlab.core.words import assignments, counted
from gemmlab.kernels.claims import OF_EXERCISE
from gemmlab.verify.elementwise import SOURCE_LIMIT, Mismatch, plain
from gemmlab.verify.guards import Violation
from gemmlab.verify.verdict import OF_RESULTS, PASSED, SOMEWHERE, WRITES, Verdict

RIGHT = "right"
"""`CheckReport.result` of a kernel whose results are right, with a hazard or a forbidden write all the same."""
MOST_EXPLAINED = 3
"""A report explains the first failure of each kind at length, then others until this many are explained. Of the rest it
names the problems; `--json` has all in full.
"""


def _rank(hazard: Hazard, cause: str) -> tuple[bool, int]:
    """Return a sort key: hazards of kind `cause`, from which others follow, come first, in the order of their lines."""
    return (False, hazard.line) if hazard.kind == cause else (True, 0)


@dataclass(frozen=True, slots=True)
class Failure:
    """One case that failed: a wrong result, a forbidden access, another fault in words, or counters that contradict the
    kernel's file.
    """

    subject: str
    config: Mapping[str, int]
    threads: int
    problem: str
    problem_json: Mapping[str, Any]
    mismatches: tuple[Mismatch, ...] = ()
    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()
    """Other faults, in sentences, and hints at the cause of a mismatch."""
    hazards: tuple[Hazard, ...] = ()
    """Errors that the device noticed, such as races, with the names of their arrays."""
    claims: tuple[str, ...] = ()
    """Statements of the kernel's file about its counters that do not hold."""

    @property
    def kind(self) -> tuple[object, ...]:
        """The key by which a report groups failures: of those with equal keys it explains one at length."""
        places = sorted({(violation.operand, violation.place) for violation in self.violations})
        return (bool(self.mismatches), tuple(places), self.notes, self.claims)

    def explain(self) -> str:
        """Return the failure in several lines of text."""
        threads = [f"threads={self.threads}"] if self.threads > 1 else []
        config = ", ".join(filter(None, [assignments(self.config), *threads]))
        # Forbidden accesses and counters that the file did not expect do not make a result wrong.
        verb = "is wrong for" if self.mismatches else "fails at"
        head = f"{self.subject}{f' ({config})' if config else ''} {verb} {self.problem}"
        return "\n  ".join([head, *self._details()])

    def _details(self) -> list[str]:
        """Return a sentence for each fault except hazards: a report lists those once for all cases."""
        places = [*(m.explain() for m in self.mismatches), *(v.explain() for v in self.violations)]
        return [*places, *self.notes, *self.claims]

    @property
    def only_hazards(self) -> bool:
        """True if the failure consists of hazards alone, so that its result is right."""
        return not self._details()


@dataclass(frozen=True, slots=True, repr=False)
class CheckReport(Display):
    """The cases that were checked, and their outcome."""

    subject: str
    device: str
    config: Mapping[str, int]
    threads: int
    seed: int
    cases: int
    """Number of cases that were run."""
    planned: int
    """Number of cases planned; more than `cases` if the check stopped early."""
    failures: tuple[Failure, ...]
    worst_ratio: float
    """Largest error of an element divided by its bound, over all cases; at most 1 if all results are right."""
    worst_problem: str
    source_error: float
    """Largest relative error divided by the number of terms of a result (`Op.dot_length`), over all cases. The test in
    the published sources of the kernels passes below 1e-6.
    """
    source_problem: str
    seconds: float
    refused: Mapping[str, int] = field(default_factory=dict)
    """Number of cases left out, by the reason for which the kernel does not take them."""
    padded: int = 0
    """Number of cases with a leading dimension longer than a row."""
    traits: tuple[str, ...] = ()
    """Remarks on the kernel, without their subject "it": `reads C when beta is 0, so beta is 1 where it would be 0`."""
    time_limit: str = ""
    """Progress of the check when the time limit ended it, in words; empty if it did not."""
    verdict: Verdict = field(default=Verdict(PASSED, ""))
    """The kind of fault in a word or two, and one sentence on it."""
    progress: Mapping[str, int] = field(default_factory=dict)
    """Progress within the case in which the time limit ended the check, as numbers (`TimeLimitError.progress`)."""

    stray: Mapping[str, int] = field(default_factory=dict)
    """Reads of unwritten memory that reach no result, in words, and the number of cases that have them."""
    precision: str = FLOAT32
    """The precision that the bound of an element's error follows from."""
    computed: bool = True
    """False for an exercise that only chooses values: its check computes no results."""
    criteria: tuple[str, ...] = ()
    """The criteria of an exercise, each with the counted and the required value."""

    @property
    def timed_out(self) -> bool:
        """True if the time limit ended the check."""
        return bool(self.time_limit)

    @property
    def passed(self) -> bool:
        """True if no case failed and the time limit did not end the check."""
        return not self.failures and not self.timed_out

    @property
    def right(self) -> bool:
        """True if every result was within its bound, whatever else the kernel did."""
        return not any(failure.mismatches for failure in self.failures)

    @property
    def result(self) -> str:
        """The outcome of the results in a word or two, hazards aside: `pass`, `wrong at edges`, ...; `right` or `wrong`
        if the verdict is on a hazard or a forbidden write.
        """
        return self.verdict.kind if self.verdict.kind in OF_RESULTS else RIGHT if self.right else SOMEWHERE

    @property
    def hazard_kinds(self) -> tuple[str, ...]:
        """The kinds of hazards in all cases, and `writes outside` for forbidden writes; that of the verdict first."""
        first = [self.verdict.kind] if self.verdict.kind not in OF_RESULTS else []
        found = [hazard.kind for failure in self.failures for hazard in failure.hazards]
        outside = [WRITES] if any(failure.violations for failure in self.failures) else []
        return tuple(dict.fromkeys([*first, *found, *outside]))

    @property
    def source_passed(self) -> bool:
        """True if `source_error` is below 1e-6, so that the test in the published sources of the kernels would pass."""
        return self.source_error < SOURCE_LIMIT

    @property
    def remarks(self) -> list[str]:
        """Lines on what the verdict does not cover: traits, stray reads, cases left out, criteria of an exercise."""
        return [*self._traits_and_cases(), *self.exercise]

    def _traits_and_cases(self) -> list[str]:
        left_out = (f"  {counted(count, 'case')} left out: it needs {reason}" for reason, count in self.refused.items())
        strays = (f"  it {stray} ({counted(count, 'case')})" for stray, count in self.stray.items())
        return [*(f"  it {trait}" for trait in self.traits), *strays, *left_out]

    @property
    def exercise(self) -> list[str]:
        """Lines on an exercise: whether it is solved, then each criterion with its figure; empty for other kernels."""
        head = "  the exercise is solved:" if self.passed else "  the exercise is not solved:"
        return [head, *self._criteria_lines()] if self.criteria else []

    def _criteria_lines(self) -> list[str]:
        return [f"    {one}" for one in self.criteria]

    def headline(self) -> str:
        """Return the verdict, and below it each criterion of an exercise with its figure."""
        return "\n".join([f"{self.subject}: {self.verdict}", *self._criteria_lines()])

    def explain(self) -> str:
        """Return the outcome in words: that the cases are right, or the verdict and its `details`; and the remarks."""
        if self.passed:
            error = f"{self.cases} cases right, largest error {self.worst_ratio:.3f} of its bound"
            return "\n".join([f"{self.subject}: {error if self.computed else 'figures right'}", *self.remarks])
        return f"{self.headline()}\n{self.details()}"

    def details(self) -> str:
        """Return the lines after the headline: remarks, each hazard once, one failure of each kind at length, the
        problems of the others.
        """
        left_out = self._traits_and_cases()
        if not self.failures:
            return "\n".join([f"{self.subject}: {self.time_limit}", *left_out])
        head = f"{self.subject}: {len(self.failures)} of {self.cases} cases failed"
        head += ", with results that are right" if self.right and self.computed else ""
        if self.cases < self.planned:
            head += f" (stopped there; {self.planned} planned)"
        worded = [failure for failure in self.failures if not failure.only_hazards and not self._listed(failure)]
        firsts = {failure.kind: failure for failure in reversed(worded)}.values()
        shown = [failure for failure in worded if failure in firsts]
        shown += [failure for failure in worded if failure not in shown][: max(MOST_EXPLAINED - len(shown), 0)]
        others = "; ".join(
            failure.problem for failure in self.failures if failure not in shown and not self._listed(failure)
        )
        also = [f"{self.subject} {'also ' if shown else ''}fails at {others}"] if others else []
        also += [f"{self.subject}: {self.time_limit}"] if self.timed_out else []
        return "\n".join([head, *left_out, *self._hazards(), *(failure.explain() for failure in shown), *also])

    def _listed(self, failure: Failure) -> bool:
        """Return whether the verdict and the criteria of the exercise together name everything that a failure has."""
        others = failure.mismatches or failure.violations or failure.notes or failure.hazards
        return not others and all(
            claim in self.verdict.text or (bool(self.criteria) and claim.startswith(OF_EXERCISE))
            for claim in failure.claims
        )

    def _hazards(self) -> Iterator[str]:
        """Yield a line for each different hazard: the number of cases that have it, and a remedy if one is known."""
        found: dict[tuple[object, ...], list[Hazard]] = {}
        for failure in self.failures:
            for hazard in failure.hazards:
                # One line of inline PTX serves several places of the kernel: those tell.
                calls = [hazard.called_from] if hazard.called_text else []
                calls += [hazard.other_called_from] if hazard.other_called_text else []
                found.setdefault((hazard.kind, hazard.space, lines_of(hazard), frozenset(calls)), []).append(hazard)
        every = [hazard for group in found.values() for hazard in group]
        cause = leading_kind([every], "")
        # What others follow from comes first.
        groups = sorted(found.values(), key=lambda group: _rank(group[0], cause))
        # One case may show lanes of a warp, another one several warps, which say more.
        ones = [next((each for each in group if "__syncthreads" in each.message), group[0]) for group in groups]
        for group, one in zip(groups, with_cures(ones, every), strict=True):
            yield f"  in {counted(len(group), 'case')}: {one.explain()}"

    def _outcome(self) -> str:
        return "passed" if self.passed else "not passed" if self.failures else "stopped"

    def _line(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"{self.subject} on {self.device}: {self._outcome()}, {counted(self.cases, 'case')}{failed}"

    def _view(self) -> View:
        error = f"largest error {self.worst_ratio:.3f} of its bound, at {self.worst_problem}"
        return View(
            f"{self.subject} {assignments(self.config)}", self._outcome(), self.passed,
            (f"{counted(self.cases, 'case')} on {self.device} in {self.seconds:.1f} s, {error}",),
            folded=() if self.passed else (("failures", self.explain()),),
            notes=tuple(line.strip() for line in self.remarks),
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON values, and the properties `passed`, `right`, `result`, `hazard_kinds`,
        `source_passed` and `timed_out`.
        """
        data: dict[str, Any] = plain(self)
        return data | {
            "passed": self.passed, "right": self.right, "result": self.result,
            "hazard_kinds": list(self.hazard_kinds), "source_passed": self.source_passed,
            "timed_out": self.timed_out,
        }  # fmt: skip
