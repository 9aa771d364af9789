"""Check a kernel: run every case of the contract and compare it element by element, between guard bands."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gemmlab.core.errors import TimeLimitError, UsageError
from gemmlab.core.hazard import UNFINISHED, Hazard
from gemmlab.core.notebook_view import Display, View
from gemmlab.core.time_limit import require_time
from gemmlab.core.words import assignments, counted
from gemmlab.devices.device import Device, own
from gemmlab.kernels.bound import place
from gemmlab.kernels.fitting import factor_notes, fitted, with_factors
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.footprint import check_bytes, require_memory
from gemmlab.ops.op import Op, Problem
from gemmlab.verify.diagnosis import described, far_cases, needs
from gemmlab.verify.elementwise import SOURCE_LIMIT, Mismatch, plain
from gemmlab.verify.expectations import judge_claims, require_counters, require_known_names
from gemmlab.verify.guarded_run import GuardedRun, compare_results
from gemmlab.verify.guards import Violation
from gemmlab.verify.missing_barrier import missing_barrier
from gemmlab.verify.nan_hint import nan_cause
from gemmlab.verify.passes_where import Condition
from gemmlab.verify.stray_words import without_stray
from gemmlab.verify.verdict import PASSED, RACE, STOPPED, Faults, Verdict, verdict_of

MOST_FAILURES = 8
"""Checking stops after this many failing cases: they suffice for a diagnosis, and a faulty kernel may do harm."""
Progress = Callable[[int, int], None]
"""Function called with (cases done, cases in all)."""
MOST_EXPLAINED = 3
"""Failures explained at length: one of each kind, and others up to this number; `--json` has all of them."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One case with a wrong result, a forbidden access, or counters that the kernel's file does not expect."""

    subject: str
    config: Mapping[str, int]
    threads: int
    problem: str
    problem_json: Mapping[str, Any]
    mismatches: tuple[Mismatch, ...] = ()
    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()
    hazards: tuple[Hazard, ...] = ()
    """Errors that the device noticed, with the names of their arrays."""
    claims: tuple[str, ...] = ()
    """Statements of the kernel's file about its counters that do not hold."""

    @property
    def kind(self) -> tuple[object, ...]:
        """A key that is equal for failures that need only one explanation."""
        places = sorted({(violation.operand, violation.place) for violation in self.violations})
        return (bool(self.mismatches), tuple(places), self.notes, self.claims)

    def explain(self) -> str:
        """The failure in several lines of text."""
        threads = [f"threads={self.threads}"] if self.threads > 1 else []
        config = ", ".join([assignments(self.config) or "no parameters", *threads])
        # Forbidden accesses and counters that the file did not expect do not make a result wrong.
        verb = "is wrong for" if self.mismatches else "fails at"
        head = f"{self.subject} ({config}) {verb} {self.problem}"
        return "\n  ".join([head, *self._details()])

    def _details(self) -> list[str]:
        """Everything but hazards, of which a report lists each once."""
        places = [*(m.explain() for m in self.mismatches), *(v.explain() for v in self.violations)]
        return [*places, *self.notes, *self.claims]

    @property
    def only_hazards(self) -> bool:
        """True if the result is right and hazards are all there is."""
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
    """Number of cases run."""
    planned: int
    """Number of cases planned; more than `cases` if the check stopped early."""
    failures: tuple[Failure, ...]
    worst_ratio: float
    """Largest error / bound over all cases; right if it is at most 1."""
    worst_problem: str
    source_error: float
    """The source listings' own test: largest relative error / dot length; it passes below 1e-6."""
    source_problem: str
    seconds: float
    refused: Mapping[str, int] = field(default_factory=dict)
    """Number of cases left out, by the reason for which the kernel does not take them."""
    padded: int = 0
    """Number of cases with a leading dimension longer than a row."""
    traits: tuple[str, ...] = ()
    """Parts of the contract that the kernel's file says it does not keep."""
    time_limit: str = ""
    """Progress of the check when the time limit ended it; empty where it did not."""
    verdict: Verdict = field(default=Verdict(PASSED, ""))
    """The kind of fault in a word or two, and one sentence on it."""
    progress: Mapping[str, int] = field(default_factory=dict)
    """Progress within the case that was running then, as numbers (`TimeLimitError.progress`)."""

    stray: Mapping[str, int] = field(default_factory=dict)
    """Reads of unwritten memory that reach no result, in words, and the number of cases that have them."""

    @property
    def timed_out(self) -> bool:
        """True if the time limit ended the check before its last case."""
        return bool(self.time_limit)

    @property
    def passed(self) -> bool:
        """True if every case was run and right."""
        return not self.failures and not self.timed_out

    @property
    def right(self) -> bool:
        """True if every result was within its bound, whatever else the kernel did."""
        return not any(failure.mismatches for failure in self.failures)

    @property
    def source_passed(self) -> bool:
        """True if the source listings' own test would have passed."""
        return self.source_error < SOURCE_LIMIT

    @property
    def remarks(self) -> list[str]:
        """Lines on what the verdict does not cover: traits of the kernel, stray reads, cases left out."""
        left_out = (f"  {counted(count, 'case')} left out: it needs {reason}" for reason, count in self.refused.items())
        strays = (f"  it {stray} ({counted(count, 'case')})" for stray, count in self.stray.items())
        return [*(f"  it {trait}" for trait in self.traits), *strays, *left_out]

    def explain(self) -> str:
        """The outcome in words: a few failures at length, one of each kind first, then the problems of the others."""
        left_out = self.remarks
        if self.passed:
            error = f"largest error {self.worst_ratio:.3f} of its bound"
            return "\n".join([f"{self.subject}: {self.cases} cases right, {error}", *left_out])
        return f"{self.subject}: {self.verdict}\n{self.details()}"

    def details(self) -> str:
        """Everything after the verdict: each hazard once, a few failures at length, the problems of the others."""
        left_out = self.remarks
        if not self.failures:
            return "\n".join([f"{self.subject}: {self.time_limit}", *left_out])
        head = f"{self.subject}: {len(self.failures)} of {self.cases} cases failed"
        head += ", with results that are right" if self.right else ""
        if self.cases < self.planned:
            head += f" (stopped there; {self.planned} planned)"
        worded = [failure for failure in self.failures if not failure.only_hazards]
        firsts = {failure.kind: failure for failure in reversed(worded)}.values()
        shown = [failure for failure in worded if failure in firsts]
        shown += [failure for failure in worded if failure not in shown][: max(MOST_EXPLAINED - len(shown), 0)]
        others = "; ".join(failure.problem for failure in self.failures if failure not in shown)
        also = [f"{self.subject} also fails at {others}"] if others else []
        also += [f"{self.subject}: {self.time_limit}"] if self.timed_out else []
        return "\n".join([head, *left_out, *self._hazards(), *(failure.explain() for failure in shown), *also])

    def _hazards(self) -> Iterator[str]:
        """Each hazard once, with the number of cases that have it."""
        found: dict[tuple[object, ...], list[Hazard]] = {}
        for failure in self.failures:
            for hazard in failure.hazards:
                lines = frozenset(((hazard.file, hazard.line), (hazard.other_file or hazard.file, hazard.other_line)))
                found.setdefault((hazard.kind, hazard.space, lines), []).append(hazard)
        for group in found.values():
            place = missing_barrier(group[0]) if group[0].kind == RACE else ""
            missing = f"; put {place}" if place else ""
            yield f"  in {counted(len(group), 'case')}: {group[0].explain()}{missing}"

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
        """All fields as JSON values."""
        data: dict[str, Any] = plain(self)
        return data | {
            "passed": self.passed, "right": self.right, "source_passed": self.source_passed,
            "timed_out": self.timed_out,
        }  # fmt: skip


class Tally:
    """A collector of case outcomes, from which a report is made."""

    def __init__(
        self, subject: str, device: str, config: Mapping[str, int], threads: int, seed: int,
        refused: Mapping[str, int] | None = None, traits: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self._about = (subject, device, dict(config), threads, seed)
        self._refused, self._traits = dict(refused or {}), tuple(traits)
        self._padded = 0
        self._started = time.perf_counter()
        self._failures: list[Failure] = []
        self._wrong: list[Problem] = []
        self._far: list[tuple[str, tuple[Hazard, ...]]] = []
        self._cases = 0
        self._worst = (0.0, "")
        self._source = (0.0, "")
        self._stopped: tuple[str, Mapping[str, int]] = ("", {})
        self._stray: Counter[str] = Counter()

    @property
    def enough(self) -> bool:
        """True if there are so many failures that further cases would add nothing."""
        return len(self._failures) >= MOST_FAILURES

    @property
    def failed(self) -> bool:
        """True if any case has failed."""
        return bool(self._failures)

    @property
    def unsound(self) -> bool:
        """True if a result was wrong or an access forbidden, with rows as they usually lie."""
        faults = self.faults()
        return bool(faults.wrong or faults.outside or faults.hazards)

    def ratio(self, problem: str, worst_ratio: float, source_error: float) -> None:
        """Record how far the results of one case are from the reference."""
        self._worst = max(self._worst, (worst_ratio, problem))
        self._source = max(self._source, (source_error, problem))

    def strays(self, reads: Iterable[str]) -> None:
        """Record the reads of unwritten memory that reach no result of one case."""
        self._stray.update(dict.fromkeys(reads, 1))

    def case(
        self, problem: Problem, mismatches: Iterable[Mismatch | None], violations: Iterable[Violation],
        notes: Iterable[str] = (), suffix: str = "", *, padded: bool = False, hazards: Iterable[Hazard] = (),
        claims: Iterable[str] = (), far: str = "",
    ) -> None:  # fmt: skip
        """Record one case; it has failed if any of the five lists is not empty.

        `padded`: it had long rows. `far`: the operand whose rows were far apart.
        """
        self._cases += 1
        self._padded += padded
        wrong, changed = tuple(m for m in mismatches if m), tuple(violations)
        others = tuple(notes), tuple(hazards), tuple(claims)
        if not (wrong or changed or any(others)):
            return
        subject, _, config, threads, _ = self._about
        label = problem.label + suffix
        self._failures.append(Failure(subject, config, threads, label, problem.to_json(), wrong, changed, *others))
        if far:
            self._far.append((far, others[1]))
        else:
            self._wrong += [problem] if wrong else []

    def faults(self) -> Faults:
        """Return what a verdict is made of."""
        # Rows far apart are tried only if nothing else has failed.
        near = () if self._far else self._failures
        return Faults(
            cases=self._cases, wrong=self._wrong,
            outside=[violation.explain() for failure in near for violation in failure.violations],
            hazards=[failure.hazards for failure in near if failure.hazards], far=self._far,
            claims=[claim for failure in self._failures for claim in failure.claims],
            others=[note for failure in near for note in failure.notes],
        )  # fmt: skip

    def stop(self, problem: str, planned: int, error: TimeLimitError) -> None:
        """Record that the time limit passed while a case ran, or before it began."""
        so_far = f"{self._cases} of {counted(planned, 'case')} checked when the time was over"
        self._stopped = f"{so_far}, in {problem}: {error}", error.progress

    def report(
        self, planned: int, conditions: Sequence[Condition] | None = None, *, probed: bool = False
    ) -> CheckReport:
        """Return the report on the cases so far, of `planned` cases in all. `conditions` as for `verdict_of`."""
        verdict = verdict_of(self.faults(), conditions, probed=probed) if self._failures else Verdict(PASSED, "")
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
        )


def check_kernel(
    kernel: Kernel,
    device: Device,
    op: Op,
    *,
    config: Mapping[str, int] | None = None,
    threads: int = 1,
    cases: Iterable[Problem] | None = None,
    scale: str = "quick",
    seed: int = 0,
    progress: Progress | None = None,
) -> CheckReport:
    """Run `kernel` on every case (default: the operation's, in the layouts the kernel reads) and check each result.

    Results must lie within the elementwise bound. Inputs, guard bands and the gaps between rows must not change;
    memory that must not be read holds NaN. Operands start at varying distances from an aligned address. The same
    `seed` gives the same data.

    A device that counts (`CountingDevice`) adds a failure for each hazard, and (without `config` and `cases`) for each
    statement of the kernel's file that its counters contradict. Cases that the kernel does not take are left out, and
    those of the operation replaced by similar ones; `UsageError` is raised if none is left. For a kernel that always
    reads an operand, 1 takes the place of a factor 0 (`with_factors`). A time limit
    (`core.time_limit`) ends the check, and the report says how far it came. Before the first case is run, raises
    `MemoryError` for a case that needs more memory than there is and `UsageError` for a statement that names nothing
    that is counted; then the errors of building and launching. Several threads may check at once.
    """
    require_known_names(kernel, op)
    device = own(device)
    require_counters(kernel, device)
    placed = place(kernel, device, config)
    whole = cases if cases is not None else op.cases(kernel.layouts, np.random.default_rng(seed), scale)
    wanted = [with_factors(kernel, op, problem) for problem in whole]
    reasons = [kernel.refusal(placed.config, op.scalars(problem)) for problem in wanted]
    planned = [problem for problem, reason in zip(wanted, reasons, strict=True) if not reason]
    refused = Counter(filter(None, reasons))
    if refused and cases is None:
        planned = list(dict.fromkeys([*planned, *fitted(kernel, op, placed.config, wanted)]))
    if wanted and not planned:
        raise UsageError(f"{kernel.id} takes none of the sizes: {'; '.join(refused)}")
    for problem in planned:
        require_memory(check_bytes(op, problem), f"checking size {problem.label}")
    tally = Tally(kernel.id, device.id, placed.config, threads, seed, refused, factor_notes(kernel, op))
    for index, problem in enumerate(planned):
        contents = op.fill(problem, np.random.default_rng([seed, index]))
        case = GuardedRun(placed, op, problem, contents, shift=index % 16, threads=threads)
        try:
            require_time(kernel.id)
            observation = case.run(races=True)
        except TimeLimitError as error:
            tally.stop(problem.label, len(planned), error)
            return tally.report(len(planned))
        mismatches = []
        for compared in compare_results(placed, op, problem, contents, case.guarded):
            mismatches.append(compared.mismatch)
            tally.ratio(problem.label, compared.worst_ratio, compared.source_error)
        violations = [v for guarded in case.guarded.values() for v in guarded.violations()]
        hazards = observation.hazards if observation else ()
        if observation and hazards and not any(mismatches) and not violations:
            hazards, strays = without_stray(
                placed, op, problem, contents, observation, case.guarded, shift=index % 16
            )  # fmt: skip
            tally.strays(strays)
        hazards = described(case.artifact, hazards, case.places)
        notes = []
        if case.nonzero_tickets:
            notes.append(f"{case.nonzero_tickets} of its tickets are not 0 after the launch; the next one needs zeros")
        wrongs = [] if observation and observation.stopped else [wrong for wrong in mismatches if wrong]
        hints = {hint for wrong in wrongs if (hint := nan_cause(wrong, contents, kernel))}
        tally.case(problem, mismatches, violations, [*notes, *hints], padded=_is_padded(op, problem), hazards=hazards)
        if progress:
            progress(index + 1, len(planned))
        if tally.enough or (observation and any(hazard.kind == UNFINISHED for hazard in observation.hazards)):
            break
    if cases is not None or config:
        return tally.report(len(planned))
    extra, conditions, probed = 0, None, False
    try:
        if not tally.failed:
            for far in far_cases(placed, op, threads=threads, seed=seed):
                extra += 1
                wrong = [compared.mismatch for compared in far.comparisons]
                tally.case(far.problem, wrong, (), hazards=far.hazards, far=far.operand)
        # What the counters of a wrong kernel show is of no interest.
        for problem, broken in judge_claims(kernel, device, op, seed=seed) if not tally.unsound else ():
            extra += 1
            tally.case(problem, (), (), suffix=" (what its file expects)", claims=[broken] if broken else [])
        if tally.unsound:
            conditions, probed = needs(placed, op, threads=threads, seed=seed)
    except TimeLimitError as error:
        tally.stop("what its file expects", len(planned) + extra, error)
    return tally.report(len(planned) + extra, conditions, probed=probed)


def _is_padded(op: Op, problem: Problem) -> bool:
    return any(operand.rows > 1 and operand.ld > max(1, operand.cols) for operand in op.operands(problem))
