"""Bitwise functions of three values, given by their truth table as LOP3 and PLOP3 encode it."""

from __future__ import annotations

from collections.abc import Sequence

from gemmlab.emulator.lanes import Lanes


def evaluate(table: int, inputs: Sequence[Lanes]) -> Lanes:
    """Return the function of `inputs` that `table` gives: bit i of it is the value where the inputs are the bits of i.

    The first input is the highest bit.
    """
    first, *rest = inputs
    full = (1 << (1 << len(inputs))) - 1
    if table in {0, full}:
        return first.like(-1 if table else 0)
    if not rest:
        return first if table == 0b10 else ~first
    half = 1 << len(rest)
    every = (1 << half) - 1
    where_set, where_clear = table >> half, table & every
    if where_set == where_clear:
        return evaluate(where_set, rest)
    if where_clear == 0:
        return first & evaluate(where_set, rest)
    if where_set == 0:
        return ~first & evaluate(where_clear, rest)
    if where_set == every:
        return first | evaluate(where_clear, rest)
    if where_clear == every:
        return ~first | evaluate(where_set, rest)
    if where_set == where_clear ^ every:
        return first ^ evaluate(where_clear, rest)
    return (first & evaluate(where_set ^ where_clear, rest)) ^ evaluate(where_clear, rest)
