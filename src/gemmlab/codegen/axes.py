"""Offsets of elements in arrays of many axes, from an index over all axes, of which the last varies fastest."""

from __future__ import annotations

from gemmlab.ir.function import Function
from gemmlab.ir.types import I64
from gemmlab.ir.values import Operand, Value


def unravelled(fn: Function, index: Value, axes: Value, count: Operand, steps: int) -> list[Value]:
    """Emit code for the offset of element number `index` in each of `steps` arrays of the same extents; return the
    offsets.

    `axes` points to `count` entries, one for each axis; the last axis varies fastest. An entry has 1 + `steps` words:
    the extent, and the step along the axis in each array. Offsets are in the unit of the steps.
    """
    words = 1 + steps
    rest = fn.var(I64, index)
    moved = [fn.var(I64, 0) for _ in range(steps)]
    last = fn.index(count) - 1

    def move(axis: Value, at: Value) -> None:
        for word, where in enumerate(moved, 1):
            where.set(where + axis[word] * at)

    with fn.range(last) as done:
        axis = axes + (last - done) * words
        here = rest.read()
        quotient = here // axis[0]
        move(axis, here - quotient * axis[0])
        rest.set(quotient)
    # The remaining quotient is the index along the first axis: no division.
    with fn.when(last >= 0):
        move(axes, rest.read())
    return [where.read() for where in moved]
