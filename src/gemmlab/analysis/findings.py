"""Findings: the advice whose condition a kernel's facts fulfil, the costliest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from gemmlab.analysis.advice import ADVICE, Advice
from gemmlab.core.expr import Expression, parse
from gemmlab.kernels.kernel import Kernel

LEAST = 1.0
"""Findings of less weight are not worth a reader's time."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a kernel could do better, or must know."""

    key: str
    weight: float
    """An estimate, in percent of the running time, that only ranks."""
    text: str
    attempt: str
    rung: str
    """The kernel that shows how; empty where none of the ladder does."""
    figures: Mapping[str, float]
    """The facts that it rests on."""


def find(
    kernel: Kernel | None,
    ladder: Sequence[Kernel],
    facts: Mapping[str, float],
    words: Mapping[str, str],
    advice: Iterable[Advice] = ADVICE,
) -> list[Finding]:
    """All that holds, by weight. `words` are what texts may quote beside the facts; `ladder` the kernels to point to.

    A rung that comes no later than the kernel, or than the rung it says it improves on, teaches it nothing. Of code
    that is no kernel at hand (`None`) the place and the precision are unknown.
    """
    found = [_finding(row, kernel, ladder, facts, words) for row in advice if _expression(row.when)(facts)]
    worth = [finding for finding in found if finding.weight >= LEAST]
    return sorted(worth, key=lambda finding: -finding.weight)


def _finding(
    row: Advice, kernel: Kernel | None, ladder: Sequence[Kernel], facts: Mapping[str, float], words: Mapping[str, str]
) -> Finding:
    when, weight = _expression(row.when), _expression(row.weight)
    above = {rung.id for rung in _above(kernel, ladder)
             if kernel is None or row.any_precision or rung.precision == kernel.precision}  # fmt: skip
    return Finding(
        key=row.key,
        weight=float(weight(facts)),
        text=row.text.format(**{**facts, **words}),
        attempt=row.attempt,
        rung=next((rung for rung in row.rungs if rung in above), ""),
        figures={name: facts[name] for name in sorted(when.names | weight.names)},
    )


def _above(kernel: Kernel | None, ladder: Sequence[Kernel]) -> Sequence[Kernel]:
    """The rungs that come later than the kernel; all of them where its place is not known."""
    if kernel is None:
        return ladder
    rungs = [rung for rung in ladder if rung.op == kernel.op]
    places = {rung.id: place for place, rung in enumerate(rungs, start=1)}
    return rungs[places.get(kernel.id, places.get(kernel.after or "", 0)) :]


@cache
def _expression(text: str) -> Expression:
    return parse(text)
