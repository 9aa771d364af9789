"""Conditions that failing cases suggest: a number divides only their extents, or only their extents exceed a bound."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from gemmlab.kernels.names import shown
from gemmlab.ops.op import Op
from gemmlab.verify.condition import Condition, of_remainders
from gemmlab.verify.counterexample import with_extents
from gemmlab.verify.whole_tiles import Passes, divisors, extents_of

_MOST = 64
"""The largest divisor of interest; a larger one is a property of one case, not of a fault."""


def shared_by(op: Op, passes: Passes, failing: Sequence[Any], passing: Sequence[Any]) -> Iterator[Condition]:
    """Yield conditions that all of `passing` fulfil and none of `failing`; passing problems with an extent of 0 aside.

    The conditions are untested at any other problem, except that `passes` runs some to find the bound of an extent.
    """
    if not failing:
        return
    # Where an extent is 0, a kernel may pass for another reason.
    full = [problem for problem in passing if all(getattr(problem, name) for name in extents_of(op, problem))]
    for name in extents_of(op, failing[0]):
        wrong, right = ([getattr(problem, name) for problem in problems] for problems in (failing, full))
        for divisor in divisors(math.gcd(*wrong))[1:]:
            if divisor <= _MOST and all(extent % divisor for extent in right):
                condition = of_remainders(name, divisor, range(1, divisor))
                yield Condition(condition.text, condition.holds, opposite=f"{shown(name)} % {divisor} == 0")
        if right and max(right) < min(wrong):
            yield _at_most(name, _bound(op, passes, failing, name, max(right)))


def _bound(op: Op, passes: Passes, failing: Sequence[Any], name: str, right: int) -> int:
    """Find by bisection where a failing problem begins to fail as its extent `name` grows; return the value before.

    The problem is the failing one with the least such extent, and only this extent is changed. At extent `right` it is
    assumed to pass.
    """
    base = min(failing, key=lambda problem: int(getattr(problem, name)))
    wrong = int(getattr(base, name))
    while wrong - right > 1:
        middle = (wrong + right) // 2
        if passes(with_extents(op, base, **{name: middle}), 0):
            right = middle
        else:
            wrong = middle
    return right


def _at_most(name: str, bound: int) -> Condition:
    return Condition(f"{shown(name)} <= {bound}", lambda problem: bool(getattr(problem, name) <= bound))
