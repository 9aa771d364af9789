"""One row of the table of advice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Advice:
    """One row of the table."""

    key: str
    when: str
    weight: str
    text: str
    """A format over the facts and `explanation.words_of`: the finding with its figure."""
    attempt: str
    """What to try."""
    rungs: tuple[str, ...] = ()
    """Kernels that do it; shown is the first of the same operation above the kernel's own place."""
    any_precision: bool = False
    """Whether a rung that rounds its inputs otherwise than the kernel does is shown too."""
