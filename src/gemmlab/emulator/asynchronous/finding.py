"""Errors of a kernel that the engine finds, with their places; equal ones are counted."""

from __future__ import annotations

from dataclasses import dataclass

MBARRIER, PROXY, COPY, CLUSTER, RACE, TENSOR_MAP, BOUNDS, MISALIGNED, UNWRITTEN = (
    "mbarrier", "proxy", "async copy", "cluster", "race", "tensor map", "out of bounds", "misaligned", "unwritten",
)  # fmt: skip
"""Kinds of hazards."""


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
    """Index of the other instruction; -1 if there is none."""
    address: int | None = None
    count: int = 1


class Findings:
    """The errors of one launch."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, int], Finding] = {}

    def add(self, finding: Finding) -> None:
        """Add an error, or count it if it is known at these instructions."""
        key = (finding.kind, finding.site, finding.other)
        known = self._found.setdefault(key, finding)
        known.count += known is not finding

    @property
    def all(self) -> tuple[Finding, ...]:
        """Every error, in the order of their first occurrences."""
        return tuple(self._found.values())
