"""The claims of a kernel that can be checked: the problems that it takes, and statements about its counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gemmlab.core.counters import Counters
from gemmlab.core.criteria import Criterion, criteria
from gemmlab.core.errors import UsageError
from gemmlab.core.expr import Expression
from gemmlab.core.program import Config
from gemmlab.kernels.names import problem_names

DEFAULT_SHAPE = "128"
"""The size of the problem that a statement applies to if it states none."""
_EXECUTED = "executed_"
OF_EXERCISE = "exercise "
"""The beginning of `Expectation.where`, and so of the verdict, for a check of an exercise."""


@dataclass(frozen=True, slots=True)
class Restriction:
    """A condition on problems, over the names `M N K lda ... alpha beta TRANS_A` and the kernel's parameters.

    `why` is the reason of a condition that the kernel's file does not state; empty for a stated one.
    """

    that: Expression
    why: str = ""

    def admits(self, instance: Config, scalars: Mapping[str, Any]) -> bool:
        """Return whether a problem, given by `Op.scalars`, meets the condition."""
        return bool(self.that({**problem_names(scalars), **instance}))

    def explain(self) -> str:
        """Return the condition with its reason: `M == N (one argument stands for all extents)`."""
        return f"{self.that.text} ({self.why})" if self.why else self.that.text


def always_read_words(operands: Sequence[str], factors: Mapping[str, str], factor: str) -> str:
    """Return text such as `reads C when beta is 0` about the operands that `factor` multiplies (`Op.factors`)."""
    names = [name.upper() for name in operands if factors[name] == factor]
    return f"reads {' and '.join(names)} when {factor} is 0"


def demand(claim: str) -> str:
    """Return words for the origin of a claim, a text of `Expectation.verdict`: the exercise, or the kernel's file."""
    return "the exercise requires" if claim.startswith(OF_EXERCISE) else "its file expects"


def judgement_line(criterion: Criterion, values: Mapping[str, float]) -> str:
    """Return a line that says whether counted values meet a criterion, with the criterion and the values."""
    return f"{'met' if criterion.that(values) else 'NOT MET'}: {criterion.result(values)}"


@dataclass(frozen=True, slots=True)
class Expectation:
    """A statement about the counters of one run of a kernel, such as `shared_load_excess == 0`."""

    that: Expression
    shape: str = DEFAULT_SHAPE
    """The one problem that the statement applies to, in the size grammar of the operation."""
    config: Config = field(default_factory=dict)
    """Values of the kernel's parameters in that run, by name; those that are not named have their defaults."""
    where: str = ""
    """Origin of the statement: file, line and key, or `exercise RUNG` for a check of an exercise."""
    hidden: bool = False
    """True for a check of an exercise: the file does not state it, and only such checks decide whether the exercise is
    solved.
    """
    says: str = ""
    """Words for the figure, or for the whole statement (`core.criteria`); empty to use the names in the statement."""

    def check_names(self, instance: Config, scalars: Mapping[str, Any]) -> None:
        """Raise `UsageError`, with file and line, for a name that `verdict` does not know."""
        executed = [name for name in self.that.names if name.startswith(_EXECUTED)]
        try:
            self.that.check_names([*Counters.names(), *problem_names(scalars), *instance, *executed])
        except UsageError as error:
            raise UsageError(f"{self.where}: {error}") from None

    def verdict(self, counters: Counters, instance: Config, scalars: Mapping[str, Any]) -> str:
        """Return an empty text if the statement holds, else one line with the counted values.

        The statement may name: the short names of `Counters.facts`, Nsight Compute's of `Counters.totals`,
        `executed_LDG_128` (executions by warps of LDG with the modifier 128), numbers of problem and configuration.
        `UsageError` for any other name.
        """
        values = self._values(counters, instance, scalars)
        if self.that(values):
            return ""
        if self.hidden:
            broken = [one.result(values) for one in self.criteria(values) if not one.that(values)]
            return f"{self.where}: {', '.join(broken)} at {self.shape}"
        figures = ", ".join(f"{name} = {values[name]:.12g}" for name in sorted(self.that.names))
        return f"{self.where}: {self.that.text} does not hold for {self.shape}: {figures}"

    def judgements(self, counters: Counters, instance: Config, scalars: Mapping[str, Any]) -> list[str]:
        """Return a line for each criterion, with the counted values: `met: barriers: 72 (at most 80) at 128x64x128`."""
        values = self._values(counters, instance, scalars)
        return [f"{judgement_line(one, values)} at {self.shape}" for one in self.criteria(values)]

    def criteria(self, values: Mapping[str, Any]) -> list[Criterion]:
        """Return the criteria of the statement. Names in `values` that are no counters are known before a run."""
        counters = frozenset(Counters.names())
        known = frozenset(name for name in values if name not in counters and not name.startswith(_EXECUTED))
        return criteria(self.that, known, self.says)

    def _values(self, counters: Counters, instance: Config, scalars: Mapping[str, Any]) -> dict[str, Any]:
        measured = {name: metric.value for name, metric in counters.totals().items()}
        values = {**measured, **counters.facts(), **problem_names(scalars), **instance}
        for name in self.that.names:
            if name.startswith(_EXECUTED):
                values[name] = counters.executed(name.removeprefix(_EXECUTED).replace("_", "."))
        return values
