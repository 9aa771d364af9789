"""A record of what came to an mbarrier in one phase, for reports: arrivals, bytes expected, copies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gemmlab.core.words import counted

if TYPE_CHECKING:
    from gemmlab.emulator.asynchronous.copies import Copy


@dataclass(frozen=True, slots=True)
class Expectation:
    """Bytes that a thread told an mbarrier to expect."""

    site: int
    nbytes: int
    block: int
    """Number of the thread's block in the grid."""
    thread: int


@dataclass(slots=True)
class Phase:
    """The arrivals, expected bytes and completed copies in one phase of an mbarrier."""

    arrivals: dict[tuple[int, int], int] = field(default_factory=dict)
    """(rank of a block in the cluster, index of a warp in the block) -> mask of the warp's lanes that arrived."""
    expected: list[Expectation] = field(default_factory=list)
    landed: list[Copy] = field(default_factory=list, repr=False)
    """Copies that were completed in the phase."""

    @property
    def nbytes(self) -> int:
        """Number of bytes that the mbarrier was told to expect in the phase."""
        return sum(each.nbytes for each in self.expected)

    @property
    def carried(self) -> int:
        """Number of bytes that the copies completed in the phase brought."""
        return sum(copy.nbytes for copy in self.landed)

    def note(self, rank: int, warp: int, lanes: int) -> None:
        """Add the lanes of a warp in the mask `lanes` to `arrivals`."""
        self.arrivals[rank, warp] = self.arrivals.get((rank, warp), 0) | lanes


def sizes_in_words(copies: list[Copy]) -> list[tuple[str, int]]:
    """Return (words for what its copies bring, instruction) for each instruction that issued some of the copies."""
    by_site: dict[int, list[Copy]] = {}
    for copy in copies:
        by_site.setdefault(copy.site, []).append(copy)
    return [(_bytes_of(group), site) for site, group in by_site.items()]


def _bytes_of(copies: list[Copy]) -> str:
    one, several = copies[0], len(copies) > 1
    nbytes = f"{counted(one.nbytes, 'byte')} each" if several else counted(one.nbytes, "byte")
    # The words of a box end with its bytes.
    box = f", {one.what.partition(':')[0]}" if one.what else ""
    return f"{len(copies)} copies bring {nbytes}{box}" if several else f"a copy brings {nbytes}{box}"
