"""Plans for sums along axes on a GPU: the launches for an array with a given shape and strides.

Evenly spaced axes are joined. Most arrays are then rows, columns, or a nest: terms along several axes. An array with
more axes than a kernel takes is summed by several launches, or along its innermost axis first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gemmlab.arrays.on_gpu import c_strides
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.dispatch.axis_rule import choice_for_axes
from gemmlab.dispatch.sum_plans import joined
from gemmlab.ops.op import Problem
from gemmlab.ops.reduce_problem import ReduceProblem
from gemmlab.ops.sums_problem import MOST_FREE, MOST_TERMS, Free, SumsProblem, Term

_WIDEST_NEST = 1 << 20
"""The most elements in the innermost rows of a nest that one stage sums; longer rows get a stage of their own."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Launches of one kernel that do not depend on each other."""

    op: str
    kernel: str
    config: Mapping[str, int]
    problem: Problem
    steps: tuple[tuple[int, int], ...] = ((0, 0),)
    """(bytes from the start of the array, bytes from the start of the result) at which each launch begins."""


@dataclass(frozen=True, slots=True)
class AxisPlan:
    """The launches for one layout, in one or two stages; none for an empty result."""

    shape: tuple[int, ...]
    """The shape of the result."""
    first: int
    """Offset in bytes, from the address of the array, at which the first stage begins."""
    stages: tuple[Stage, ...]
    between: int = 0
    """Number of contiguous elements that the first of two stages writes for the second; 0 for a single stage."""


def axis_plan(
    shape: Sequence[int], strides: Sequence[int], axes: Sequence[int], *, keepdims: bool,
    out_strides: Sequence[int] | None = None,
) -> AxisPlan:  # fmt: skip
    """Return the plan for sums along `axes` (none negative) of a float32 array with this shape and these strides.

    All strides are in bytes, multiples of 4. The result has `out_strides`, by default those of C order.
    """
    result = result_shape(shape, axes, keepdims=keepdims)
    if 0 in result:
        return AxisPlan(result, 0, ())
    steps = iter(c_strides(result, FLOAT_BYTES) if out_strides is None else out_strides)
    terms: list[tuple[int, ...]] = []
    free: list[tuple[int, ...]] = []
    first = 0
    for index, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        out = next(steps) if keepdims or index not in axes else 0
        if extent == 1:
            continue
        if index in axes:
            first += min(0, (extent - 1) * stride)
            terms.append((extent, abs(stride) // FLOAT_BYTES))
        else:
            free.append((extent, stride // FLOAT_BYTES, out // FLOAT_BYTES))
    if 0 in shape:
        first, terms = 0, [(0, 1)]
    return AxisPlan(result, first, *_stages(_narrowest_first(free), _narrowest_first(terms)))


def result_shape(shape: Sequence[int], axes: Sequence[int], *, keepdims: bool) -> tuple[int, ...]:
    """Return the shape of the sums along `axes`, none of them negative."""
    return tuple(1 if n in axes else extent for n, extent in enumerate(shape) if keepdims or n not in axes)


def _narrowest_first(axes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the axes, joined if evenly spaced, by ascending step; those that repeat elements (step 0) come last."""
    return sorted(joined(axes), key=lambda axis: (axis[1] == 0, abs(axis[1])))


def _stages(free: list[tuple[int, ...]], terms: list[tuple[int, ...]]) -> tuple[tuple[Stage, ...], int]:
    if not free and (not terms or (len(terms) == 1 and terms[0][1] == 1)):
        return (Stage("reduce", "reduce_peak", {}, ReduceProblem(math.prod(extent for extent, _ in terms))),), 0
    nested = len(terms) > 1 and (not free or terms[0][1] < abs(free[0][1])) and terms[0][0] > _WIDEST_NEST
    if len(terms) <= MOST_TERMS and not nested:
        return (_stage(free, terms),), 0
    # First the innermost terms, whose sums form rows; then these rows.
    rest = terms[1:]
    length = math.prod(extent for extent, _ in rest)
    apart, left = 1, list[tuple[int, ...]]()
    for extent, step in rest:
        left.append((extent, step, apart))
        apart *= extent
    rows = list[tuple[int, ...]]()
    for extent, step, out in free:
        left.append((extent, step, apart))
        rows.append((extent, apart, out))
        apart *= extent
    stages = (_stage(_narrowest_first(left), terms[:1]), *_stages(_narrowest_first(rows), [(length, 1)])[0])
    return stages, apart


def _stage(free: list[tuple[int, ...]], terms: list[tuple[int, ...]]) -> Stage:
    """Return the launches for sums along `terms`, at most `MOST_TERMS` axes, for each index of the axes `free`."""
    # One launch for each index of the surplus axes. Those are the shortest ones, except for the narrowest.
    looped = sorted(free[1:], key=lambda axis: axis[0])[: max(0, len(free) - MOST_FREE)]
    within: list[Free] = [(extent, step, out) for extent, step, out in free if (extent, step, out) not in looped]
    along: list[Term] = [(extent, step) for extent, step in terms]
    problem = SumsProblem(tuple(within), tuple(along))
    # A strip goes from row to row along the longest axis.
    columns, rows = (along[:1], along[1:]) if problem.across else ([], along)
    problem = replace(problem, terms=(*columns, *sorted(rows, key=lambda axis: -axis[0])))
    places = itertools.product(*(range(extent) for extent, *_ in looped))
    steps = tuple(
        (
            FLOAT_BYTES * sum(index * step for index, (_, step, _) in zip(place, looped, strict=True)),
            FLOAT_BYTES * sum(index * out for index, (_, _, out) in zip(place, looped, strict=True)),
        )
        for place in places
    )
    choice = choice_for_axes(problem)
    return Stage("sums", choice.kernel, choice.config, problem, steps)
