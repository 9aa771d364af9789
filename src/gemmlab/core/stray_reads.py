"""A test of whether unwritten memory that a kernel reads has a part in what it does.

A kernel may bring a tile too many into shared memory, or read ahead in its last step, and never use what it read. The
run is repeated with other contents of all unwritten memory: NaN, large and small numbers. If it leaves the same words
in every array, prints the same, and executes every instruction as often, what was read had no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gemmlab.core.counters import Observation
from gemmlab.core.hazard import UNWRITTEN, Hazard
from gemmlab.core.hazard_source import with_source

FILLINGS = (0xFF, 0x7B, 0xFB, 0x3F)
"""Bytes that unwritten memory holds in turn: NaN (or -1), large numbers of either sign in every floating type, and
0.747 as a float, 4.8e-4 as a double, 1.81 as a half.
"""
Again = Callable[[int], Observation | None]
"""Function that repeats a run with a byte as the contents of unwritten memory; it returns `None` if the run leaves
other words in an array than the first one.
"""


def without_stray(
    observation: Observation, again: Again, texts: Mapping[str, str] | None = None
) -> tuple[tuple[Hazard, ...], tuple[str, ...]]:
    """Return the hazards of a run that remain, and in words the reads of unwritten memory that reach no result.

    If the run has only such reads, no hazard remains. If it has any other hazard, or if other contents of unwritten
    memory change what it does, all hazards remain, and there are no words. `texts` has sources by the file names in the
    hazards; any other file is read.
    """
    hazards = observation.hazards
    if not hazards or any(hazard.kind != UNWRITTEN for hazard in hazards):
        return hazards, ()
    for filling in FILLINGS:
        outcome = again(filling)
        if outcome is None or _steps(outcome) != _steps(observation):
            return hazards, ()
    return (), tuple(dict.fromkeys(map(_words, with_source(hazards, texts))))


def _steps(observation: Observation) -> object:
    """Return how often every instruction was executed, the kinds of hazards, and what was printed."""
    sites = tuple((site.address, site.executed) for site in observation.counters.sites)
    return sites, frozenset(hazard.kind for hazard in observation.hazards), observation.printed


def _words(hazard: Hazard) -> str:
    where = f"{hazard.file or hazard.kernel}:{hazard.line}" if hazard.line else hazard.kernel
    text = f" `{hazard.text}`" if hazard.text else ""
    return f"reads {hazard.space} memory that nothing has written at {where}{text}, which reaches no result"
