"""The test of conditions: problems that fulfil them, that were not used to find them, and that a kernel gets wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from gemmlab.ops.op import Op
from gemmlab.verify.whole_tiles import Passes, extents_of

Holds = Callable[[Any], bool]
_UNRELATED = ((1, 2, 5), (7, 11, 13), (19, 29, 41), (43, 61, 127), (33, 97, 193), (17, 130, 139))
"""Extents, each of which is tried in each place. Most are primes: kernels go wrong at remainders, and these have all kinds of them."""
_TILES = ((128, 256, 384), (128, 128, 256))
"""Extents for kernels that take whole tiles alone."""
_FARTHEST = 64
"""A condition may round an extent up by so much."""
_FEWEST = 4
"""So many problems have to be run: fewer would prove nothing."""


def confirmed(op: Op, passes: Passes, conditions: Sequence[Holds], right: bool = True) -> tuple[bool, list[Any]]:
    """Return whether a kernel is right (with `right` False: wrong) at all problems tried, and those where it is not.

    The problems fulfil all conditions. It is False if the kernel takes too few of them, and ends at the first one.
    """
    ran = 0
    for shapes in (_UNRELATED, _TILES):
        for problem in _problems(op, shapes, conditions):
            outcome = passes(problem, 0)
            if outcome is not None and outcome is not right:
                return False, [problem]
            ran += outcome is not None
        if ran >= _FEWEST:
            return True, []
    return False, []


def _problems(op: Op, shapes: Sequence[tuple[int, int, int]], conditions: Sequence[Holds]) -> Iterator[Any]:
    """Yield each order of each shape, with extents rounded up until all conditions hold; nothing else."""
    (plain,) = op.parse_sizes("128")
    names = tuple(extents_of(op, plain))
    seen = set()
    for shape in shapes:
        for first in range(len(shape)):
            order = (*shape[first:], *shape[:first])[: len(names)]
            problem = packed(op, plain, dict(zip(names, order)))
            for name, extent in zip(names, order):
                tried = (packed(op, problem, {name: extent + step}) for step in range(_FARTHEST))
                problem = min(tried, key=lambda each: sum(not holds(each) for holds in conditions))
            if problem not in seen and all(holds(problem) for holds in conditions):
                seen.add(problem)
                yield problem


def packed(op: Op, problem: Any, extents: dict[str, int]) -> Any:
    """Return the problem with other extents, and with rows that follow each other without a gap."""
    leading = (f"ld{operand.name}" for operand in op.operands(problem))
    return replace(problem, **{name: 0 for name in leading if hasattr(problem, name)}, **extents)
