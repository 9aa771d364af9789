"""Findings: the rows of advice whose condition is true for a kernel's facts, the costliest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from string import Formatter
from typing import Any

from gemmlab.analysis.advice import ADVICE, Advice
from gemmlab.core.architecture import runs
from gemmlab.core.expr import Expression, parse
from gemmlab.core.notebook_view import Display, View
from gemmlab.core.numerals import plain
from gemmlab.kernels.kernel import Kernel

LEAST = 1.0
"""Least weight of the findings that are kept; lighter ones are dropped."""


class _Words(Formatter):
    """A formatter for the texts of advice that writes no number with an exponent."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec.endswith("g"):
            return plain(value, int(format_spec.removeprefix(".").removesuffix("g")))
        return str(super().format_field(value, format_spec))


@dataclass(frozen=True, slots=True, repr=False)
class Finding(Display):
    """One fault of a kernel, or one possible gain, with advice."""

    key: str
    weight: float
    """Estimated cost in percent of the running time; more than 100 for errors and others that are to come first. It
    serves only to rank findings and to drop light ones (`LEAST`).
    """
    text: str
    attempt: str
    rung: str
    """Id of a kernel on the ladder that applies the advice; empty if there is none."""
    figures: Mapping[str, float]
    """Facts that the condition and the weight use, by name."""
    gain_pct: float | None = None
    """Predicted gain of the advice in percent of the speed; `None` if it is not predicted (`model.remedies`)."""

    @property
    def gain_words(self) -> str:
        """The predicted gain as an entry of a table."""
        if self.gain_pct is None:
            return "not predicted"
        return f"{self.gain_pct:.0f} %" if self.gain_pct >= 1 else "less than 1 %"

    @property
    def gain(self) -> str:
        """The predicted gain as a sentence."""
        return "Gain not predicted." if self.gain_pct is None else f"Predicted gain: {self.gain_words}."

    def _line(self) -> str:
        return f"{self.key}: {self.text}"

    def _view(self) -> View:
        return View(self.key, lines=(self.text, self.attempt, self.gain))


def find(
    kernel: Kernel | None,
    ladder: Sequence[Kernel],
    facts: Mapping[str, float],
    words: Mapping[str, str],
    advice: Iterable[Advice] = ADVICE,
    *,
    arch: str = "",
) -> list[Finding]:
    """Return the findings that apply and have a weight of at least `LEAST`, the heaviest first.

    Texts of advice may quote `words` besides the facts. A finding names only a rung of `ladder` that runs on `arch` (if
    given), comes after the kernel and has its precision, unless the advice allows any. The place of a kernel that is no
    rung is that of the rung whose exercise it solves, or that it states to follow. With `kernel=None`, for code outside
    the catalog, place and precision are unknown and every rung qualifies. If the kernel solves the exercise of a rung,
    advice that may name this rung is left out: it would give the solution away.
    """
    idea = kernel.exercise if kernel is not None else ""
    rows = [row for row in advice if not idea or idea not in row.rungs]
    rungs = [rung for rung in _above(kernel, ladder) if not arch or runs(rung.arch, arch)]
    found = [_finding(row, kernel, rungs, facts, words) for row in rows if _expression(row.when)(facts)]
    worth = [finding for finding in found if finding.weight >= LEAST]
    return sorted(worth, key=lambda finding: -finding.weight)


def _finding(
    row: Advice, kernel: Kernel | None, rungs: Sequence[Kernel], facts: Mapping[str, float], words: Mapping[str, str]
) -> Finding:
    when, weight = _expression(row.when), _expression(row.weight)
    above = {rung.id for rung in rungs
             if kernel is None or row.any_precision or rung.precision == kernel.precision}  # fmt: skip
    return Finding(
        key=row.key,
        weight=float(weight(facts)),
        text=_Words().vformat(row.text, (), {**facts, **words}),
        attempt=_Words().vformat(row.attempt, (), {**facts, **words}),
        rung=next((rung for rung in row.rungs if rung in above), ""),
        figures={name: facts[name] for name in sorted(when.names | weight.names)},
    )


def _above(kernel: Kernel | None, ladder: Sequence[Kernel]) -> Sequence[Kernel]:
    """Return the rungs of the kernel's operation that come after the kernel: all of them if its place is unknown.

    With `kernel=None`, return the whole ladder.
    """
    if kernel is None:
        return ladder
    rungs = [rung for rung in ladder if rung.op == kernel.op]
    places = {rung.id: place for place, rung in enumerate(rungs, start=1)}
    return rungs[places.get(kernel.id, places.get(kernel.exercise or kernel.after or "", 0)) :]


@cache
def _expression(text: str) -> Expression:
    return parse(text)
