"""Problems of whole tiles, whose extents are multiples of most tile sizes, and the same with one extent changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.kernels.fitting import as_taken
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.op import Op

Passes = Callable[[Any, int], bool | None]
"""(problem, number of elements by which its arrays are off an aligned address) -> whether the kernel is right there;
`None` if it does not take the problem.
"""
_EXTENTS = (128, 192, 240, 256)
"""Extents that are multiples of most tiles, those of 24, 48, 80 and 96 included."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A problem of whole tiles at which a kernel is right; all its extents are `extent`."""

    op: Op
    extent: int
    problem: Any
    passes: Passes
    apart: tuple[str, ...]
    """The leading dimensions of operands with whose rows twice as far apart the kernel is right, too. `passes_with`
    keeps them at that distance; rows of other operands follow each other without a gap.
    """

    def passes_with(self, name: str, extent: int) -> bool | None:
        """Return the result of `passes` with extent `name` set to `extent`, which is at most twice `self.extent`."""
        rows = {each: 2 * self.extent if each in self.apart else 0 for each in _leading(self.op, self.problem)}
        return self.passes(replace(self.problem, **rows, **{name: extent}), 0)


def whole_tiles(kernel: Kernel, op: Op, passes: Passes, factors: Mapping[str, float] | None = None) -> Whole | None:
    """Return the smallest problem of whole tiles at which the kernel is right; `None` if it is wrong at all that it
    takes.

    The operands have a layout that the kernel reads. `factors` replaces values of the problems. Raises `UsageError` if
    the kernel takes none of them.
    """
    taken = False
    for extent in _EXTENTS:
        (stated,) = op.parse_sizes(str(extent))
        problem = as_taken(kernel, op, replace(stated, **factors) if factors else stated)
        right = passes(problem, 0)
        taken |= right is not None
        if right:
            name, leading = next(extents_of(op, problem)), tuple(_leading(op, problem))
            whole = Whole(op, extent, problem, passes, leading)
            if whole.passes_with(name, extent):
                return whole
            alone = (each for each in leading if replace(whole, apart=(each,)).passes_with(name, extent))
            return replace(whole, apart=tuple(alone))
    if not taken:
        raise UsageError("the kernel takes no problem of whole tiles")
    return None


def extents_of(op: Op, problem: Any) -> Iterator[str]:
    """Yield the names of the extents that the problem has."""
    return (name for name in op.extents if hasattr(problem, name))


def _leading(op: Op, problem: Any) -> Iterator[str]:
    """Yield the names of the leading dimensions that the problem has."""
    return (name for operand in op.operands(problem) if hasattr(problem, name := f"ld{operand.name}"))


def divisors(number: int) -> list[int]:
    """Return the divisors of a number in ascending order."""
    return [each for each in range(1, number + 1) if number % each == 0]
