"""The order of a launch's hazards, and the rule by which several are reported as one.

Causes come before effects, and a pair of source lines is reported once.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from gemmlab.core.hazard import RACE, Hazard

_NUMBER = re.compile(r"\b(0x)?[0-9a-f]*\d[0-9a-f]*\b")


class Rank(IntEnum):
    """The order of causes: a hazard may be the cause of those with higher ranks."""

    BYTES = 0
    """An mbarrier is told to expect a wrong number of bytes: all waits for it are wrong."""
    OVERRUN = 1
    """A copy writes memory that an earlier copy has not filled yet."""
    MISUSE = 2
    """Misuse of an mbarrier, a cluster's barrier or a tensor map: all waits after it may be wrong."""
    EARLY = 3
    """A read of data that a bulk copy has not brought yet; the hazard names the copy, or the wait for a wrong phase."""
    RACE = 4
    """A race between warps of a block or blocks of a cluster, or an early access to registers of a wgmma: a barrier, a
    wait or a fence is missing.

    Races within a warp, races between blocks in global memory, and `OVERWRITTEN` and `PROXY` of
    `instruction_layout.Kind` have rank `OTHER`.
    """
    OTHER = 5
    """Any other hazard of an instruction, such as an access out of bounds."""
    END = 6
    """The end of a launch that cannot or may not go on (a deadlock, an endless loop), a wait for a block that need not
    be resident, or an operation that comes after the end of a block or for which nothing waited before that end."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A hazard before it is put in order."""

    hazard: Hazard
    rank: Rank
    site: int
    """Index of the instruction in the kernel's code; it tells instructions without line information apart."""
    other: int = -1
    subject: Hashable = None
    """Mark that tells this hazard from another one of the same kind and lines; `None` if none is needed."""

    @property
    def key(self) -> Hashable:
        """A value that is equal for two hazards if they are reported as one."""
        mine = self.hazard
        here = (mine.file, mine.line) if mine.line else self.site
        there = (mine.other_file or mine.file, mine.other_line) if mine.other_line else self.other
        if mine.kind == RACE:  # neither access is the first, and its words depend on which one found it
            return mine.kind, mine.space == "global", frozenset((here, there))
        return mine.kind, here, there if mine.other_line else None, self.subject


def words_without_numbers(message: str) -> str:
    """Return a message with `#` for each number, so that two that differ only in addresses or threads are equal."""
    return _NUMBER.sub("#", message)


def in_order(found: Iterable[Ranked]) -> Iterator[Hazard]:
    """Yield hazards by rank, and within a rank in the given order.

    Of hazards with the same `Ranked.key`, only the first is yielded, with the sum of their counts.
    """
    groups: dict[Hashable, list[Ranked]] = {}
    for each in sorted(found, key=lambda each: each.rank):
        groups.setdefault(each.key, []).append(each)
    for group in groups.values():
        yield replace(group[0].hazard, count=sum(each.hazard.count for each in group))
