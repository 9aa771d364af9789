"""Find the conditions under which a wrong kernel is right.

Properties of a problem of whole tiles at which it is right are changed one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.names import shown
from gemmlab.ops.op import Op
from gemmlab.verify.alternatives import alternatives
from gemmlab.verify.condition import Condition, contradicted, of_remainders
from gemmlab.verify.counterexample import confirmed
from gemmlab.verify.failing_cases import shared_by
from gemmlab.verify.whole_tiles import Passes, Whole, divisors, extents_of, whole_tiles

_HALF = 0.5
_MOST_REMAINDERS = 16
"""The largest divisor of which every remainder is tried: a kernel that unrolls its loop may be right at some."""


def passes_where(
    kernel: Kernel, op: Op, passes: Passes, failing: Sequence[Any] = (), passing: Sequence[Any] = (),
    *, addresses: bool = False,
) -> list[Condition] | None:  # fmt: skip
    """Return the conditions that the kernel needs. If none is found, return `None` if the kernel is wrong at all whole
    tiles, else `[]`.

    `passes` runs a problem (`whole_tiles.Passes`). `failing` and `passing` are problems whose outcome is known. These
    conditions are tried in turn, until no failing problem fulfils them: multiples of extents, factors, distances of
    rows and layouts; least extents; remainders of extents; properties that the failing problems share (`shared_by`);
    two properties of which one suffices (`alternatives`). Conditions are returned only if the kernel is right at other
    problems that fulfil them (`confirmed`). With `addresses`, arrays that begin at odd addresses are tried. Raises
    `UsageError` if the kernel takes no problem of whole tiles.
    """
    wrong, right = [*failing], [*passing]

    def recorded(problem: Any, shift: int) -> bool | None:
        outcome = passes(problem, shift)
        if outcome is not None and not shift:
            (right if outcome else wrong).append(problem)
        return outcome

    whole = whole_tiles(kernel, op, recorded)
    if whole is None and (factors := _needed_factors(op, right)):
        whole = whole_tiles(kernel, op, recorded, factors)
    if whole is not None:
        found = [*_extents(whole), *_others(kernel, op, whole), *(_addresses(op, whole) if addresses else ())]
        for finer in (None, _least_extents, _remainders):
            conditions = [*found, *(finer(whole, found) if finer else ())]
            if conditions and not contradicted(conditions, wrong) and _sure(kernel, op, recorded, conditions):
                return _with_true_opposites(kernel, op, recorded, conditions)
    for condition in shared_by(op, recorded, wrong, right):
        if _separates(kernel, op, recorded, condition, wrong):
            return [condition]
    # A fault that needs two properties at once is cured by either of them.
    for condition in alternatives(op, recorded, wrong, right):
        if _separates(kernel, op, recorded, condition, wrong):
            return [condition]
    return None if whole is None else []


def _needed_factors(op: Op, right: Sequence[Any]) -> dict[str, float]:
    """Return factor -> 1 for each factor that is 0 by default, unless a problem is known to be right where it is 0."""
    (plain,) = op.parse_sizes("128")
    full = [problem for problem in right if all(getattr(problem, name) for name in extents_of(op, problem))]
    names = [name for name in dict.fromkeys(op.factors.values()) if getattr(plain, name, 1.0) == 0.0]
    return {name: 1.0 for name in names if all(getattr(problem, name) for problem in full)}


def _separates(kernel: Kernel, op: Op, passes: Passes, condition: Condition, wrong: Sequence[Any]) -> bool:
    sure = not contradicted([condition], wrong) and _sure(kernel, op, passes, [condition])
    return sure and _all_others_fail(kernel, op, passes, condition)


def _sure(kernel: Kernel, op: Op, passes: Passes, conditions: Sequence[Condition]) -> bool:
    return confirmed(kernel, op, passes, [condition.holds for condition in conditions])


def _all_others_fail(kernel: Kernel, op: Op, passes: Passes, condition: Condition) -> bool:
    parts = condition.either or (condition,)
    return confirmed(kernel, op, passes, [_not(part) for part in parts], right=False)


def _not(condition: Condition) -> Callable[[Any], bool]:
    return lambda problem: not condition.holds(problem)


def _with_true_opposites(kernel: Kernel, op: Op, passes: Passes, conditions: Sequence[Condition]) -> list[Condition]:
    """Return the conditions without their `opposite`. A single condition keeps it if the kernel is wrong at each of
    several problems that break the condition.
    """
    if len(conditions) == 1 and conditions[0].opposite and _all_others_fail(kernel, op, passes, conditions[0]):
        return [*conditions]
    return [replace(condition, opposite="") for condition in conditions]


def _extents(whole: Whole) -> Iterator[Condition]:
    for name in extents_of(whole.op, whole.problem):
        wrong = False
        for multiple in divisors(whole.extent):
            right = multiple == whole.extent or whole.passes_with(name, whole.extent + multiple)
            wrong |= right is False
            if right:
                if wrong:
                    yield of_remainders(name, multiple, _right_remainders(whole, name, multiple))
                break


def _right_remainders(whole: Whole, name: str, multiple: int) -> list[int]:
    """Return the remainders modulo `multiple` of extent `name` at which the kernel is right.

    Those that divide `multiple` are not tried: they are known to be wrong.
    """
    tried = range(1, multiple) if multiple <= _MOST_REMAINDERS else ()
    right = (rest for rest in tried if multiple % rest and whole.passes_with(name, whole.extent + rest))
    return [0, *right]


def _remainders(whole: Whole, _known: Sequence[Condition]) -> Iterator[Condition]:
    for name in extents_of(whole.op, whole.problem):
        tried = range(whole.extent, whole.extent + _MOST_REMAINDERS)
        outcomes = {extent: whole.passes_with(name, extent) for extent in tried}
        wrong = [extent for extent, right in outcomes.items() if right is False]
        for multiple in (*range(2, _MOST_REMAINDERS // 2 + 1), _MOST_REMAINDERS) if wrong else ():
            rests = {extent % multiple for extent in wrong}
            if all(outcomes[extent] is not True for extent in tried if extent % multiple in rests):
                yield of_remainders(name, multiple, [rest for rest in range(multiple) if rest not in rests])
                break


def _least_extents(whole: Whole, known: Sequence[Condition]) -> Iterator[Condition]:
    for name in extents_of(whole.op, whole.problem):
        taken = [
            extent
            for extent in range(whole.extent)
            if all(condition.holds(replace(whole.problem, **{name: extent})) for condition in known)
        ]
        # Small extents are where kernels go wrong; a bisection needs a wrong one to begin with.
        wrong = next(
            (place for place, extent in enumerate(taken[:3]) if whole.passes_with(name, extent) is False), None
        )
        if wrong is None:
            continue
        right = len(taken)
        while right - wrong > 1:
            middle = (wrong + right) // 2
            if whole.passes_with(name, taken[middle]) is not False:
                right = middle
            else:
                wrong = middle
        least = taken[right] if right < len(taken) else whole.extent
        yield Condition(f"{shown(name)} >= {least}", _at_least(name, least))


def _at_least(name: str, least: int) -> Callable[[Any], bool]:
    return lambda problem: bool(getattr(problem, name) >= least)


def _others(kernel: Kernel, op: Op, whole: Whole) -> Iterator[Condition]:
    problem, passes = whole.problem, whole.passes
    for name, scalar in op.scalars(problem).items():
        if isinstance(scalar, np.floating) and hasattr(problem, name):
            usual = getattr(problem, name)
            for value in (_HALF, 0.0):
                if value != usual and passes(replace(problem, **{name: value}), 0) is False:
                    yield Condition(f"{name} == {usual:g}" if value else f"{name} != 0", _factor(name, value, usual))
                    break
    for operand in op.operands(problem):
        leading = f"ld{operand.name}"
        if not hasattr(problem, leading):
            continue
        tried = ((step, passes(replace(problem, **{leading: operand.ld + step}), 0)) for step in divisors(operand.ld))
        known = [(step, right) for step, right in tried if right is not None]
        least = next((step for step, right in known if right), 0)
        if known and not least:
            yield Condition(f"{leading} is the length of a row", _packed(op, operand.name), packed=operand.name)
        elif known and least > known[0][0]:
            yield Condition(f"{leading} % {least} == 0", _rows_of(op, operand.name, least), ragged=True, of_rows=True)
    layouts = (
        {layout: op.in_layouts(problem, [layout])[0] for layout in kernel.layouts} if len(kernel.layouts) > 1 else {}
    )
    wrong = [layout for layout, turned in layouts.items() if passes(turned, 0) is False]
    if wrong:
        yield Condition(
            f"the layout is {' or '.join(sorted({*layouts} - {*wrong}))}",
            lambda problem: getattr(problem, "layout", "") not in wrong,
        )


def _addresses(op: Op, whole: Whole) -> Iterator[Condition]:
    """Yield the condition on the alignment of the kernel's arrays in bytes; nothing if any address will do, or none
    that is tried.
    """
    nbytes = op.operands(whole.problem)[0].element.nbytes
    steps = [1 << power for power in range(6)]
    least = next((step for step in steps if whole.passes(whole.problem, step)), 0)
    if least > 1:
        align = least * nbytes
        yield Condition(f"arrays begin at multiples of {align} bytes (align = {align})", lambda _: True,
                        ragged=True, of_addresses=True)  # fmt: skip


def _factor(name: str, wrong: float, usual: float) -> Callable[[Any], bool]:
    if wrong:
        return lambda problem: bool(getattr(problem, name) == usual)
    return lambda problem: bool(getattr(problem, name) != 0.0)


def _packed(op: Op, name: str) -> Callable[[Any], bool]:
    def holds(problem: Any) -> bool:
        return all(operand.ld <= max(1, operand.cols) for operand in op.operands(problem) if operand.name == name)

    return holds


def _rows_of(op: Op, name: str, multiple: int) -> Callable[[Any], bool]:
    return lambda problem: all(one.ld % multiple == 0 for one in op.operands(problem) if one.name == name)
