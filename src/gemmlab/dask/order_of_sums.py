"""The order in which blocks along k are added: a function of the numbers of blocks, never of workers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

ENOUGH = 32
"""The least number of tasks that should be able to run at the same time. If C has fewer blocks, k is split between
several sums.
"""
FAN = 4
"""Most sums that one task adds. A task costs the scheduler about a millisecond, and fewer tasks move fewer blocks."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Blocks `first` .. `end` - 1 along k, multiplied and added one after the other."""

    first: int
    end: int


def chains(blocks_of_c: int, blocks_of_k: int) -> tuple[Chain, ...]:
    """Return the chains that every block of C is the sum of. Their sums are then added in groups of neighbours."""
    count = max(1, min(blocks_of_k, -(-ENOUGH // max(1, blocks_of_c))))
    bounds = [blocks_of_k * index // count for index in range(count + 1)]
    return tuple(Chain(first, end) for first, end in pairwise(bounds))


def groups(count: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Return the levels of the tree that adds `count` sums: on each, groups of sums by their numbers.

    The first of a group is the number of the group's sum. The last level is one group, whose sum has number 0. One sum
    has no levels.
    """
    levels, apart = [], 1
    while apart < count:
        wide = apart * FAN
        level = (tuple(range(first, min(first + wide, count), apart)) for first in range(0, count, wide))
        levels.append(tuple(group for group in level if len(group) > 1))
        apart = wide
    return tuple(levels)
