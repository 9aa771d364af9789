"""The conditions under which a wrong kernel is right: one property of a whole-tile problem is changed at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gemmlab.core.errors import UsageError
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.names import shown
from gemmlab.ops.op import Op

_WHOLE = (128, 256)
"""Extents that are multiples of most tiles; the second one is tried if the first is not right."""
_PADDING = 4
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Condition:
    """A property of problems that a kernel needs."""

    text: str
    """The property, such as `K % 16 == 0`."""
    holds: Callable[[Any], bool]
    ragged: bool = False
    """True if it is about extents that are no multiples of a tile."""


def passes_where(kernel: Kernel, op: Op, passes: Callable[[Any], bool | None]) -> list[Condition] | None:
    """Return the conditions that the kernel needs; `None` if it is wrong at whole tiles, too.

    `passes` runs a problem and says whether it was right, `None` if the kernel does not take it. Raises `UsageError`
    if the kernel takes none of the problems with whole tiles.
    """
    known = [(extent, passes(_squared(op, extent))) for extent in _WHOLE]
    extent = next((extent for extent, right in known if right), 0)
    if all(right is None for _, right in known):
        raise UsageError(f"{kernel.id} takes no problem of whole tiles")
    if not extent:
        return None
    whole = _squared(op, extent)
    return [*_extents(op, whole, extent, passes), *_others(kernel, op, whole, passes)]


def _squared(op: Op, extent: int) -> Any:
    (problem,) = op.parse_sizes(str(extent))
    return problem


def _extents(op: Op, whole: Any, extent: int, passes: Callable[[Any], bool | None]) -> Iterator[Condition]:
    for name in op.extents:
        if not hasattr(whole, name):
            continue
        for multiple in _powers_of_two(extent):
            changed = _with_extent(op, whole, name, extent + multiple if multiple < extent else extent)
            if passes(changed):
                if multiple > 1:
                    yield Condition(f"{shown(name)} % {multiple} == 0", _divisible(name, multiple), ragged=True)
                break


def _divisible(name: str, multiple: int) -> Callable[[Any], bool]:
    return lambda problem: getattr(problem, name) % multiple == 0


def _powers_of_two(last: int) -> Iterator[int]:
    power = 1
    while power <= last:
        yield power
        power *= 2


def _with_extent(op: Op, problem: Any, name: str, extent: int) -> Any:
    leading = (f"ld{operand.name}" for operand in op.operands(problem))
    rows = {each: 0 for each in leading if hasattr(problem, each)}
    return replace(problem, **rows, **{name: extent})


def _others(kernel: Kernel, op: Op, whole: Any, passes: Callable[[Any], bool | None]) -> Iterator[Condition]:
    for name, scalar in op.scalars(whole).items():
        if isinstance(scalar, np.floating) and hasattr(whole, name):
            usual = getattr(whole, name)
            for value in (_HALF, 0.0):
                if value != usual and passes(replace(whole, **{name: value})) is False:
                    yield Condition(f"{name} == {usual:g}" if value else f"{name} != 0", _factor(name, value, usual))
                    break
    for operand in op.operands(whole):
        leading = f"ld{operand.name}"
        if hasattr(whole, leading) and passes(replace(whole, **{leading: operand.ld + _PADDING})) is False:
            yield Condition(f"{leading} is the length of a row", _packed(op, operand.name))
    layouts = (
        {layout: op.in_layouts(whole, [layout])[0] for layout in kernel.layouts} if len(kernel.layouts) > 1 else {}
    )
    wrong = [layout for layout, problem in layouts.items() if passes(problem) is False]
    if wrong:
        yield Condition(
            f"the layout is {' or '.join(sorted({*layouts} - {*wrong}))}",
            lambda problem: getattr(problem, "layout", "") not in wrong,
        )


def _factor(name: str, wrong: float, usual: float) -> Callable[[Any], bool]:
    if wrong:
        return lambda problem: bool(getattr(problem, name) == usual)
    return lambda problem: bool(getattr(problem, name) != 0.0)


def _packed(op: Op, name: str) -> Callable[[Any], bool]:
    def holds(problem: Any) -> bool:
        return all(operand.ld <= max(1, operand.cols) for operand in op.operands(problem) if operand.name == name)

    return holds
