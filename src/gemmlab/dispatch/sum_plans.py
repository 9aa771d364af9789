"""Plans for sums on a CPU: the elements of each sum, for an array with a given shape and strides.

Evenly spaced axes are joined, and backward axes are reversed. Axes that repeat one element (stride 0) are not summed:
the sum is multiplied, or the result repeated. So a broadcast array costs only as much as its elements in memory.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from gemmlab.codegen.reductions import PLAN

_SIZE = 4
_LINE = 64
_CACHED = 1 << 15
"""Approximate bytes that stay in the L1 cache."""
_Axes = list[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class SumPlan:
    """The arguments of the compiled code, and the shapes of arrays that Python makes."""

    words: array[int]
    """The arguments, as `codegen.reductions.PLAN` orders them; empty if the array has no elements."""
    address: int
    """Address of `words`, which must live as long as the address is used; 0 if `words` is empty."""
    shape: tuple[int, ...]
    """The shape of the result."""
    made: tuple[int, ...]
    """The shape of the computed array. It is repeated along axes of extent 1 to give the result."""
    elements: int
    """Number of elements that are read."""


def sum_plan(shape: Sequence[int], strides: Sequence[int], axes: Sequence[int], *, keepdims: bool) -> SumPlan:
    """Return the plan for sums along `axes` (none negative) of a float32 array with these strides, in bytes."""
    whole = [1 if index in axes else extent for index, extent in enumerate(shape) if keepdims or index not in axes]
    small = [1 if index in axes or strides[index] == 0 else shape[index] for index in range(len(shape))]
    out_steps = [_SIZE * math.prod(small[index + 1 :]) for index in range(len(small))]
    made = [extent for index, extent in enumerate(small) if keepdims or index not in axes]
    if 0 in shape:
        return SumPlan(array("q"), 0, tuple(whole), tuple(made), 0)
    terms: _Axes = []
    free: _Axes = []
    first = first_out = 0
    times = 1
    for index, (extent, step) in enumerate(zip(shape, strides, strict=True)):
        if index in axes:
            if step == 0:
                times *= extent
            elif extent > 1:
                first += min(0, (extent - 1) * step)
                terms.append((extent, abs(step)))
        elif step and extent > 1:
            over = out_steps[index]
            if step < 0:
                first += (extent - 1) * step
                first_out += (extent - 1) * over
            free.append((extent, abs(step), over if step > 0 else -over))
    terms, free = joined(terms), joined(free)
    count = math.prod(extent for extent, _ in terms)
    results = math.prod(extent for extent, *_ in free)
    place = _column_axis(terms, free, count, results)
    by_columns = place is not None
    if place is None and free:
        place = max(range(len(free)), key=lambda index: free[index][0])
    cols, col_apart, out_apart = free.pop(place) if place is not None else (1, 0, _SIZE)
    length, apart = terms[-1] if terms else (1, _SIZE)
    middle, middle_apart = terms[-2] if len(terms) > 1 else (1, 0)
    nest, outer = terms[:-2], free
    nest_at = len(PLAN)
    free_at = nest_at + 2 * len(nest)
    dims_at = free_at + 3 * len(outer)
    words = array("q", (
        by_columns, first, first_out, times, count * results, count, results, len(made), length, apart, middle,
        middle_apart, nest_at, len(nest), cols, col_apart, out_apart, free_at, len(outer), dims_at,
    ))  # fmt: skip
    for axis in (*nest, *outer):
        words.extend(axis)
    words.extend(made)
    return SumPlan(words, words.buffer_info()[0], tuple(whole), tuple(made), count * results)


def joined(axes: _Axes) -> _Axes:
    """Return the axes (extent, step in each array) with the widest step in the first array first.

    Adjacent axes are joined into one if their elements are evenly spaced in every array.
    """
    found: _Axes = []
    for extent, *steps in sorted(axes, key=lambda axis: -abs(axis[1])):
        if found and all(outer == extent * inner for outer, inner in zip(found[-1][1:], steps, strict=True)):
            found[-1] = (found[-1][0] * extent, *steps)
        else:
            found.append((extent, *steps))
    return found


def _column_axis(terms: _Axes, free: _Axes, count: int, results: int) -> int | None:
    """Return the index in `free` of the axis along which adjacent results are summed together.

    `None` if each result is summed by itself. The choice follows from estimated times in units of about a nanosecond;
    `count` is the number of terms of a result.
    """
    if not terms or not free:
        return None
    length, apart = terms[-1]
    side_by_side = apart == _SIZE
    each = count / 12 if side_by_side and length >= _LINE // _SIZE else count if len(terms) > 1 else count / 2
    far = apart >= _LINE and count * _LINE > _CACHED
    best, found = results * (8 + 8 * len(terms) * (len(terms) > 1) + each * (6 if far else 1)), None
    for index, (cols, step, _) in enumerate(free):
        sweep = (cols / 16 + 1) / 2 if step == _SIZE else cols * (5 if step >= _LINE and cols * _LINE > _CACHED else 1)
        cost = results / cols * (60 + count * sweep + count / length)
        if cost < best:
            best, found = cost, index
    return found
