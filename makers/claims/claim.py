"""A claim of a source and what becomes of it.

`decide` looks at the records through `Evidence` and returns a `Finding`. What it asks for and is not there makes the
claim open, with what it needs; so a claim is written once, and its verdict follows when the record is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from claims.evidence import Evidence, Missing, Timed
from gemmlab.core.program import Config


class Verdict(StrEnum):
    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNTESTABLE = "not testable here"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict with the figure that it rests on, and the records that the figure comes from."""

    verdict: Verdict
    figure: str
    records: tuple[str, ...] = ()
    count: tuple[str, Config] | None = None
    """A kernel and configuration that the emulator could count, where that is what an open claim misses."""
    times: tuple[tuple[str, Sequence[Timed]], ...] = ()
    """What a GPU could time, where that is: contestants of one run, by problem's label."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a source."""

    said: str
    """In our words."""
    tested: str
    """How, with the thresholds."""
    decide: Callable[[Evidence], Finding]


@dataclass(frozen=True, slots=True)
class Source:
    """One of the documents that this project began with."""

    name: str
    about: str
    """What it is and what it was measured on."""
    claims: tuple[Claim, ...]


def judged(holds: bool, figure: str) -> Finding:
    """Confirmed or refuted by a figure from the records."""
    return Finding(Verdict.CONFIRMED if holds else Verdict.REFUTED, figure)


def untestable(why: str) -> Callable[[Evidence], Finding]:
    """A `decide` for what cannot be reproduced on the devices at hand."""
    return lambda _evidence: Finding(Verdict.UNTESTABLE, why)


def awaiting(what: str) -> Callable[[Evidence], Finding]:
    """A `decide` for what needs something that this package does not have yet."""
    return lambda _evidence: Finding(Verdict.OPEN, f"needs {what}")


def finding(claim: Claim) -> Finding:
    """The verdict of the records as they are."""
    evidence = Evidence()
    try:
        found = claim.decide(evidence)
    except Missing as missing:
        return Finding(Verdict.OPEN, f"needs {missing}", count=missing.count, times=missing.times)
    return Finding(found.verdict, found.figure, tuple(dict.fromkeys(evidence.used)))
