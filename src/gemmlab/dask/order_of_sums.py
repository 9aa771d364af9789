"""The order in which blocks along k are added: a function of the numbers of blocks, never of workers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

ENOUGH = 32
"""The least number of tasks that should be able to run at the same time. If C has fewer blocks, k is split between
several sums.
"""


@dataclass(frozen=True, slots=True)
class Chain:
    """Blocks `first` .. `end` - 1 along k, multiplied and added one after the other."""

    first: int
    end: int


def chains(blocks_of_c: int, blocks_of_k: int) -> tuple[Chain, ...]:
    """Return the chains that every block of C is the sum of. Their sums are then added in pairs, neighbours first."""
    count = max(1, min(blocks_of_k, -(-ENOUGH // max(1, blocks_of_c))))
    bounds = [blocks_of_k * index // count for index in range(count + 1)]
    return tuple(Chain(first, end) for first, end in pairwise(bounds))


def pairs(count: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the levels of the tree that adds `count` sums: on each, pairs (into, from) of sums by their numbers.

    The last level is one pair, which adds to number 0.
    """
    levels, apart = [], 1
    while apart < count:
        levels.append(tuple((first, first + apart) for first in range(0, count - apart, 2 * apart)))
        apart *= 2
    return tuple(levels)
