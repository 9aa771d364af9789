"""Minima and maxima of integers: of single numbers or of pairs of 16 bits."""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.emulator.form import Form, PredicateResult
from gemmlab.emulator.isa.adding import halves
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes

_FORMATS = ("U32", "S16x2", "U16x2")


@opcode("IMNMX", "VIMNMX")
def imnmx(x: Form) -> None:
    """Take the lesser of two if the last operand, a predicate, is true, else the greater; `.RELU`: at least 0.

    The result predicates, for the lower and the upper half of a pair, are true if the first operand was taken, or both
    are equal.
    """
    _allow(x)
    d = x.dest()
    outs = x.dest_predicates(2)
    a, b, least = x.source(), x.source(), x.predicate()
    if outs:
        _first_taken(x, outs, a, b, least)
    d.set(_extreme(x, least, a, b))


@opcode("VIMNMX3")
def vimnmx3(x: Form) -> None:
    """Take the least of three if the last operand, a predicate, is true, else the greatest; `.RELU`: at least 0."""
    _allow(x)
    d, a, b, c, least = x.dest(), x.source(), x.source(), x.source(), x.predicate()
    d.set(_extreme(x, least, a, b, c))


@opcode("VIADDMNMX")
def viaddmnmx(x: Form) -> None:
    """Take the lesser of `a + b` and `c` if the last operand, a predicate, is true, else the greater; the sum wraps."""
    _allow(x)
    d = x.dest()
    packed = x.has("S16x2", "U16x2")
    if packed and any(operand.neg for operand in x.instruction.operands):
        raise x.refuse("a negated pair")
    a, b, c, least = x.source(), x.source(), x.source(), x.predicate()
    total = halves(lambda one, two: one + two, a, b) if packed else a + b
    d.set(_extreme(x, least, total, c))


def _allow(x: Form) -> None:
    x.allow(*_FORMATS, "RELU")
    if x.has("RELU") and x.has("U32", "U16x2"):
        raise x.refuse("a lower bound of 0 for unsigned numbers")


def _extreme(x: Form, least: Lanes, *values: Lanes) -> Lanes:
    unsigned = x.has("U32", "U16x2")

    def both(lesser: Callable[[Lanes, Lanes], Lanes], greater: Callable[[Lanes, Lanes], Lanes]) -> Lanes:
        def of(*parts: Lanes) -> Lanes:
            low = high = parts[0]
            for part in parts[1:]:
                low, high = lesser(low, part), greater(high, part)
            chosen = least.select(low, high)
            return chosen.smax(0) if x.has("RELU") else chosen

        return halves(of, *values) if x.has("S16x2", "U16x2") else of(*values)

    return both(Lanes.umin, Lanes.umax) if unsigned else both(Lanes.smin, Lanes.smax)


def _first_taken(x: Form, outs: list[PredicateResult], a: Lanes, b: Lanes, least: Lanes) -> None:
    if len(outs) != 2 or not x.has("S16x2", "U16x2") or x.has("RELU"):
        raise x.refuse("predicates of anything but pairs of 16 bits")
    for out, shift in zip(outs, (0, 16), strict=True):
        one, two = (a >> shift).trunc("i16"), (b >> shift).trunc("i16")
        unsigned = x.has("U16x2")
        not_above = one.ule(two) if unsigned else one.le(two)
        not_below = one.uge(two) if unsigned else one.ge(two)
        out.set((least & not_above) | (~least & not_below))
