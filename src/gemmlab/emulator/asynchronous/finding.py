"""Errors of a kernel that the engine finds, with their places; equal ones are counted."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from gemmlab.emulator.hazard_order import Rank, words_without_numbers

MBARRIER, PROXY, COPY, CLUSTER, RACE, TENSOR_MAP, BOUNDS, MISALIGNED, UNWRITTEN = (
    "mbarrier", "proxy", "async copy", "cluster", "race", "tensor map", "out of bounds", "misaligned", "unwritten",
)  # fmt: skip
"""Kinds of errors that the engine finds (`Finding.kind`), as reports name them."""


@dataclass(slots=True)
class Finding:
    """One error: its first place, and how often it occurred there."""

    kind: str
    message: str
    block: int
    """Number of the block in the grid."""
    thread: int
    site: int
    """Index of the instruction."""
    other: int = -1
    """Index of the other instruction that takes part in the error; -1 if there is none."""
    address: int | None = None
    count: int = 1
    state: bool = False
    """True if the finding describes what is left in a deadlock or at the end of a block."""
    order: Rank | None = None
    """The finding's place among the hazards of a launch; `None` if it follows from `kind` and `state` (`rank`)."""
    mentions: tuple[tuple[str, int], ...] = ()
    """Other instructions that have to do with the error: (words for what it does, index of the instruction) of each."""

    @property
    def subject(self) -> Hashable:
        """Key that tells apart findings of one kind at the same instructions.

        It is the mbarrier's address if `state` is true and `kind` is `MBARRIER`, else the message without its numbers.
        """
        return self.address if self.state and self.kind == MBARRIER else words_without_numbers(self.message)

    @property
    def rank(self) -> Rank:
        """The place of the finding among the hazards of a launch."""
        if self.order is not None:
            return self.order
        return Rank.END if self.state else _RANKS.get(self.kind, Rank.OTHER)


_RANKS = {MBARRIER: Rank.MISUSE, TENSOR_MAP: Rank.MISUSE, CLUSTER: Rank.MISUSE, RACE: Rank.RACE, PROXY: Rank.RACE}


class Findings:
    """The errors of one launch."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Finding] = {}

    def add(self, finding: Finding) -> None:
        """Add an error, or count it if it is known at these instructions."""
        key = (finding.kind, finding.site, finding.other, finding.subject)
        known = self._found.setdefault(key, finding)
        known.count += known is not finding

    @property
    def all(self) -> tuple[Finding, ...]:
        """Every error, in the order of their first occurrences."""
        return tuple(self._found.values())
