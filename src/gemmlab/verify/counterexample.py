"""Test conditions on problems that were not used to find them: a problem that fulfils them and fails refutes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

from gemmlab.kernels.fitting import as_taken
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.op import Op
from gemmlab.verify.whole_tiles import Passes, extents_of

Holds = Callable[[Any], bool]
_UNRELATED = (
    (1, 2, 5), (7, 11, 13), (19, 29, 41), (24, 60, 112), (43, 61, 127), (33, 97, 193), (17, 130, 139), (32, 72, 160),
)  # fmt: skip
"""Extents; each triple is tried in three orders. Kernels go wrong at remainders, and primes have all kinds of them."""
_TILES = ((128, 256, 384), (128, 128, 256))
"""Extents for kernels that take only whole tiles."""
_FARTHEST = 64
"""To fulfil a condition, an extent is rounded up by less than this, or else down."""
_HALF = 0.5
_FEWEST = 4
"""The least number of problems that must have run to confirm a condition."""


def confirmed(
    kernel: Kernel, op: Op, passes: Passes, conditions: Sequence[Holds], *, right: bool = True
) -> bool:  # fmt: skip
    """Return whether a kernel is right at all of several problems that fulfil the conditions.

    With `right` False, return whether it is wrong at all of them. The problems have all layouts that the kernel reads,
    and half of them have factors of 1/2 if the kernel takes those. The search ends at the first problem with the other
    outcome. The result is False, too, if the kernel takes too few of the problems.
    """
    ran = 0
    for shapes in (_UNRELATED, _TILES):
        tried = set()
        for alike in _problems(kernel, op, shapes, conditions):
            outcomes = (passes(problem, 0) for problem in alike if problem not in tried)
            outcome = next((each for each in outcomes if each is not None), None)
            tried.update(alike)
            if outcome is not None and outcome is not right:
                return False
            ran += outcome is not None
        if ran >= _FEWEST:
            return True
    return False


def with_extents(op: Op, problem: Any, **extents: int) -> Any:
    """Return the problem with other extents, and with rows that follow each other without a gap."""
    leading = (f"ld{operand.name}" for operand in op.operands(problem))
    return replace(problem, **{name: 0 for name in leading if hasattr(problem, name)}, **extents)


def _problems(
    kernel: Kernel, op: Op, shapes: Sequence[tuple[int, int, int]], conditions: Sequence[Holds]
) -> Iterator[list[Any]]:
    """Yield lists of at most two problems with the extents of `shapes`, rounded to fulfil all conditions; those that
    still do not are left out.

    The first problem of a list has one of the layouts that the kernel reads; in half of the lists its factors, if it
    has any, are 1/2. The second one has the layout and the factors that `as_taken` gives to a problem of one size. If
    both are the same, the list has one problem.
    """
    (plain,) = (as_taken(kernel, op, problem) for problem in op.parse_sizes("128"))
    names = tuple(extents_of(op, plain))
    turned = op.in_layouts(plain, kernel.layouts) if len(kernel.layouts) > 1 else [plain]
    halves = {name: _HALF for name in op.factors.values() if hasattr(plain, name)}
    likes = cycle([*turned, *(replace(problem, **halves) for problem in turned)])
    orders = ((*shape[first:], *shape[:first]) for shape in shapes for first in range(len(shape)))
    for order in orders:
        extents = dict(zip(names, order, strict=False))
        rounded = (
            _rounded(op, with_extents(op, like, **extents), extents, conditions) for like in (next(likes), plain)
        )
        yield [each for each in dict.fromkeys(rounded) if not _broken(each, conditions)]


def _rounded(op: Op, problem: Any, extents: Mapping[str, int], conditions: Sequence[Holds]) -> Any:
    for name, extent in extents.items():
        if least := _broken(problem, conditions):
            near = (*range(extent + 1, extent + _FARTHEST), *range(extent - 1, 0, -1))
            tried = (with_extents(op, problem, **{name: each}) for each in near)
            problem = next((each for each in tried if _broken(each, conditions) < least), problem)
    return problem


def _broken(problem: Any, conditions: Sequence[Holds]) -> int:
    return sum(not holds(problem) for holds in conditions)
