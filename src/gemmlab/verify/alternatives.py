"""Conditions such as `M % 4 == 0 or beta == 0`: a kernel is right if a problem has at least one of two properties.

To find them, the properties of one failing problem are changed one at a time: a property with which it passes is one of
the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from gemmlab.kernels.names import shown
from gemmlab.ops.op import Op
from gemmlab.verify.condition import Condition, of_remainders
from gemmlab.verify.counterexample import with_extents
from gemmlab.verify.whole_tiles import Passes, extents_of

_TRIED = 16
"""Number of successive extents, from the failing one on, of which the outcome is found to see a common remainder."""
_LARGEST = 512
"""The extent that is tried to see whether a kernel is right at large extents."""


def alternatives(op: Op, passes: Passes, failing: Sequence[Any], passing: Sequence[Any]) -> Iterator[Condition]:
    """Yield the conditions of two properties that all of `passing` fulfil and none of `failing`.

    Nothing is yielded if one property alone tells `passing` from `failing`. Problems without products (an extent or a
    factor of the products is 0) are left out, since a kernel may pass there for another reason. `passes` runs further
    problems and may append them to both lists. The conditions are untested at any other problem.
    """
    wrong = _full(op, failing)
    if not wrong or not _full(op, passing):
        return
    base = min(wrong, key=lambda problem: math.prod(getattr(problem, name) for name in extents_of(op, problem)))
    mended = [*_mended(op, passes, base)]
    # `passes` may have made both lists longer.
    wrong, right = _full(op, failing), _full(op, passing)
    mended = [one for one in mended if not any(map(one.holds, wrong))]
    if any(all(map(one.holds, right)) for one in mended):
        return
    for one, other in combinations(mended, 2):
        if all(one.holds(problem) or other.holds(problem) for problem in right):
            yield _either(one, other)


def _full(op: Op, problems: Sequence[Any]) -> list[Any]:
    """Return the problems that have products to add: no extent is 0, and no factor of the products is 0."""
    return [
        problem
        for problem in problems
        if all(getattr(problem, name, 1) for name in (*extents_of(op, problem), *_of_products(op, problem)))
    ]


def _of_products(op: Op, problem: Any) -> set[str]:
    """Return the names of the factors of the products, such as alpha."""
    return {op.factors[one.name] for one in op.operands(problem) if one.role == "in" and one.name in op.factors}


def _either(one: Condition, other: Condition) -> Condition:
    return Condition(
        f"{one.text} or {other.text}",
        lambda problem: one.holds(problem) or other.holds(problem),
        ragged=one.ragged and other.ragged,
        either=(one, other),
    )


def _mended(op: Op, passes: Passes, base: Any) -> Iterator[Condition]:
    """Yield properties that the failing problem `base` lacks and with each of which, all else unchanged, it passes."""
    for name in extents_of(op, base):
        yield from _of_extent(op, passes, base, name)
    for name in dict.fromkeys(op.factors.values()):
        for value in (1.0,) if name in _of_products(op, base) else (0.0, 1.0):
            if getattr(base, name, value) != value and passes(replace(base, **{name: value}), 0):
                yield Condition(f"{name} == {value:g}", _equal(name, value))
                break


def _of_extent(op: Op, passes: Passes, base: Any, name: str) -> Iterator[Condition]:
    at = int(getattr(base, name))

    def right(extent: int) -> bool:
        return passes(with_extents(op, base, **{name: extent}), 0) is True

    outcomes = {at: False} | {extent: right(extent) for extent in range(at + 1, at + _TRIED)}
    for multiple in range(2, _TRIED // 2 + 1):
        rests = {extent % multiple for extent, passed in outcomes.items() if passed}
        if rests and all(passed == (extent % multiple in rests) for extent, passed in outcomes.items()):
            condition = of_remainders(name, multiple, sorted(rests))
            if " or " not in condition.text:
                yield replace(condition, opposite="")
            return
    if at > 1 and right(1):
        bound = _last(1, at, right)
        yield Condition(f"{shown(name)} <= {bound}", lambda problem: bool(getattr(problem, name) <= bound))
    elif at < _LARGEST and right(_LARGEST):
        least = _last(_LARGEST, at, right)
        yield Condition(f"{shown(name)} >= {least}", lambda problem: bool(getattr(problem, name) >= least))


def _last(good: int, bad: int, right: Any) -> int:
    """Return the extent next to a wrong one for which `right` is true, by bisection between `good` and `bad`."""
    while abs(bad - good) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if right(middle) else (good, middle)
    return good


def _equal(name: str, value: float) -> Any:
    return lambda problem: bool(getattr(problem, name) == value)
