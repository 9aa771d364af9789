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

    A rung on a lower step than the kernel's own, or the kernel itself, teaches it nothing. Of code that is no kernel at
    hand (`None`) the step and the precision are unknown.
    """
    found = [_finding(row, kernel, ladder, facts, words) for row in advice if _expression(row.when)(facts)]
    worth = [finding for finding in found if finding.weight >= LEAST]
    return sorted(worth, key=lambda finding: -finding.weight)


def _finding(
    row: Advice, kernel: Kernel | None, ladder: Sequence[Kernel], facts: Mapping[str, float], words: Mapping[str, str]
) -> Finding:
    when, weight = _expression(row.when), _expression(row.weight)
    above = {rung.id for rung in ladder
             if kernel is None or (_above(rung, kernel)
                                   and (row.any_precision or rung.precision == kernel.precision))}  # fmt: skip
    return Finding(
        key=row.key,
        weight=float(weight(facts)),
        text=row.text.format(**{**facts, **words}),
        attempt=row.attempt,
        rung=next((rung for rung in row.rungs if rung in above), ""),
        figures={name: facts[name] for name in sorted(when.names | weight.names)},
    )


def _above(rung: Kernel, kernel: Kernel) -> bool:
    if rung.op != kernel.op or rung.id == kernel.id or rung.step is None:
        return False
    return kernel.step is None or rung.step > kernel.step


@cache
def _expression(text: str) -> Expression:
    return parse(text)
