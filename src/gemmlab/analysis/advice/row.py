"""The type of a row in the table of advice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Advice:
    """One row of the table: a condition over a kernel's facts and the advice that follows."""

    key: str
    when: str
    """Condition under which the row applies, a `core.expr` expression."""
    weight: str
    """Estimated gain in percent of the running time, a `core.expr` expression."""
    text: str
    """Text of the finding, a format string over the facts and `explanation.words_of`."""
    attempt: str
    """Remedy to try, a format string as `text` is."""
    rungs: tuple[str, ...] = ()
    """Ids of kernels that apply the remedy; a finding names the first of them that is a later rung than its kernel."""
    any_precision: bool = False
    """True if a finding may name a rung whose precision differs from the kernel's."""
