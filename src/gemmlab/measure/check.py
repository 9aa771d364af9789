"""Is a kernel right? Every case of the contract, compared element by element between guard bands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.core.errors import WrongResultError
from gemmlab.devices.device import Device
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure.elementwise import SOURCE_LIMIT, Mismatch, compare, plain
from gemmlab.measure.guarded import GuardedBuffer, Violation
from gemmlab.measure.run import bind
from gemmlab.ops.op import Op, Problem

MOST_FAILURES = 8
"""Checking stops after so many failing cases: they tell enough, and a wild kernel may do harm."""
Progress = Callable[[int, int], None]
"""Called with (cases done, cases in all)."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One case that went wrong."""

    subject: str
    config: Mapping[str, int]
    threads: int
    problem: str
    problem_json: Mapping[str, Any]
    mismatches: tuple[Mismatch, ...] = ()
    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()

    def explain(self) -> str:
        """Several lines for people."""
        config = " ".join(f"{name}={value}" for name, value in self.config.items()) or "no parameters"
        head = f"{self.subject} ({config}, threads={self.threads}) is wrong for {self.problem}"
        said = [*(m.explain() for m in self.mismatches), *(v.explain() for v in self.violations), *self.notes]
        return "\n  ".join([head, *said])


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What was checked and how it went."""

    subject: str
    device: str
    config: Mapping[str, int]
    threads: int
    seed: int
    cases: int
    """Cases run."""
    planned: int
    """Cases there were; more than `cases` where checking stopped early."""
    failures: tuple[Failure, ...]
    worst_ratio: float
    """Largest error / bound over all cases; up to 1 is right."""
    worst_problem: str
    source_error: float
    """The sources' own test: largest relative error / dot length; they ask for less than 1e-6."""
    source_problem: str
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every case was right."""
        return not self.failures

    @property
    def source_passed(self) -> bool:
        """Whether the sources' own test would have passed."""
        return self.source_error < SOURCE_LIMIT

    def explain(self) -> str:
        """The outcome in words, every failure told."""
        if self.passed:
            return f"{self.subject}: {self.cases} cases right, largest error {self.worst_ratio:.3f} of its bound"
        head = f"{self.subject}: {len(self.failures)} of {self.cases} cases wrong"
        if self.cases < self.planned:
            head += f" (stopped there; {self.planned} planned)"
        return "\n".join([head, *(failure.explain() for failure in self.failures)])

    def raise_if_failed(self) -> None:
        """`WrongResultError` with the explanation."""
        if not self.passed:
            raise WrongResultError(self.explain())

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values."""
        data: dict[str, Any] = plain(self)
        return data | {"passed": self.passed, "source_passed": self.source_passed}


class Tally:
    """Collects outcomes of cases into a report."""

    def __init__(self, subject: str, device: str, config: Mapping[str, int], threads: int, seed: int) -> None:
        self._about = (subject, device, dict(config), threads, seed)
        self._started = time.perf_counter()
        self._failures: list[Failure] = []
        self._cases = 0
        self._worst = (0.0, "")
        self._source = (0.0, "")

    @property
    def enough(self) -> bool:
        """Whether there are so many failures that going on tells nothing."""
        return len(self._failures) >= MOST_FAILURES

    def ratio(self, problem: str, worst_ratio: float, source_error: float) -> None:
        """Note how far the results of one case were from the reference."""
        self._worst = max(self._worst, (worst_ratio, problem))
        self._source = max(self._source, (source_error, problem))

    def case(
        self, problem: Problem, mismatches: Iterable[Mismatch | None], violations: Iterable[Violation],
        notes: Iterable[str] = (), suffix: str = "",
    ) -> None:  # fmt: skip
        """Note one case; it failed when anything is in the three lists."""
        self._cases += 1
        wrong, changed, said = tuple(m for m in mismatches if m), tuple(violations), tuple(notes)
        if wrong or changed or said:
            subject, _, config, threads, _ = self._about
            label = problem.label + suffix
            self._failures.append(Failure(subject, config, threads, label, problem.to_json(), wrong, changed, said))

    def report(self, planned: int) -> CheckReport:
        """The report so far."""
        seconds = time.perf_counter() - self._started
        return CheckReport(
            *self._about, self._cases, planned, tuple(self._failures), *self._worst, *self._source, seconds
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
    """Run `kernel` on every case (default: the operation's, in the layouts the kernel reads) and judge each.

    Results must lie within the elementwise bound, inputs keep their bits, guard bands and the gaps between
    rows theirs; what must not be read holds NaN. Operands start at varying distances from an aligned address.
    The same `seed` gives the same data. Raises what building and launching raise.
    """
    chosen = kernel.configure(config)
    planned = list(cases) if cases is not None else [*op.cases(kernel.layouts, np.random.default_rng(seed), scale)]
    tally = Tally(kernel.id, device.id, chosen, threads, seed)
    for index, problem in enumerate(planned):
        rng = np.random.default_rng([seed, index])
        contents = op.fill(problem, rng)
        operands = op.operands(problem)
        shift = index % 16
        buffers = {o.name: GuardedBuffer(o, contents[o.name], shift * (1 + i)) for i, o in enumerate(operands)}
        bound = bind(
            kernel, device, op, problem, {name: b.flat for name, b in buffers.items()}, config=chosen, threads=threads
        )
        bound.run()
        mismatches = []
        expected = op.reference(problem, contents)
        for name, values in expected.items():
            bound.download(name, buffers[name].flat)
            compared = compare(name, buffers[name].contents(), values, op.dot_length(problem))
            mismatches.append(compared.mismatch)
            tally.ratio(problem.label, compared.worst_ratio, compared.source_error)
        tally.case(problem, mismatches, [v for b in buffers.values() for v in b.violations()])
        if progress:
            progress(index + 1, len(planned))
        if tally.enough:
            break
    return tally.report(len(planned))
