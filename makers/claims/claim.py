"""A claim of a source, and its verdict.

`decide` reads the records through `Evidence` and returns a `Finding`. If a record that it needs is missing, the claim
is open, and the finding names the record. So a claim is written once, and its verdict follows when the record is made.
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
    """The kernel and configuration whose counts an open claim needs; `None` if it needs no counts."""
    times: tuple[tuple[str, Sequence[Timed]], ...] = ()
    """The times that an open claim needs: pairs of a problem's label and the contestants to time in one run."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a source."""

    said: str
    """The statement, paraphrased."""
    tested: str
    """The test of the statement, with its thresholds."""
    decide: Callable[[Evidence], Finding]


@dataclass(frozen=True, slots=True)
class Source:
    """One of the documents that this project began with."""

    name: str
    about: str
    """The document's subject, and the hardware that it measured on."""
    claims: tuple[Claim, ...]


def judged(holds: bool, figure: str) -> Finding:
    """Return the finding `CONFIRMED` if `holds`, else `REFUTED`, with the figure from the records."""
    return Finding(Verdict.CONFIRMED if holds else Verdict.REFUTED, figure)


def untestable(why: str) -> Callable[[Evidence], Finding]:
    """Return a `decide` for a claim that cannot be tested on the devices at hand."""
    return lambda _evidence: Finding(Verdict.UNTESTABLE, why)


def awaiting(what: str) -> Callable[[Evidence], Finding]:
    """Return a `decide` for a claim whose test needs something that this package does not have yet."""
    return lambda _evidence: Finding(Verdict.OPEN, f"needs {what}")


def finding(claim: Claim) -> Finding:
    """Return the finding on a claim from the present records, with the records that it used."""
    evidence = Evidence()
    try:
        found = claim.decide(evidence)
    except Missing as missing:
        return Finding(Verdict.OPEN, f"needs {missing}", count=missing.count, times=missing.times)
    return Finding(found.verdict, found.figure, tuple(dict.fromkeys(evidence.used)))
