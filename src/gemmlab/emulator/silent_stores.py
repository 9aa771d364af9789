"""Stores compared by value: of the value that is there already, or of one value by several lanes."""

from __future__ import annotations

from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES
from gemmlab.ir.function import Function
from gemmlab.ir.types import I8
from gemmlab.ir.values import Value, Var


def look_for_changes(
    fn: Function, found: Var, host: Value, words: Value, start: Lanes, count: Value, lane: Value
) -> None:
    """Set `found` to 1 if a lane's store changes a byte of an element of `count` bytes at host address `host`.

    `words` are the words that the warp stores, a row of lanes each; `start` is the element's byte offset in the access.
    """
    old, new = fn.cast(host, I8), fn.cast(words, I8)
    with fn.range(count) as byte, fn.when(fn.load(old + byte).differs(fn.load(new + _place(start, byte, lane)))):
        found.set(1)


def look_for_difference(
    fn: Function, found: Var, words: Value, stores: tuple[tuple[Lanes, Value], tuple[Lanes, Value]], count: Value
) -> None:
    """Set `found` to 1 if two lanes store different bytes into an element: each with its offset and its lane."""
    both = fn.cast(words, I8)
    with fn.range(count) as byte:
        one, other = (fn.load(both + _place(start, byte, lane)) for start, lane in stores)
        with fn.when(one.differs(other)):
            found.set(1)


def _place(start: Lanes, byte: Value, lane: Value) -> Value:
    """The place of a byte of a lane's store among the words of the warp."""
    place = Lanes(byte) + start
    return (((place >> 2) * LANES + Lanes(lane)) * 4 + (place & 3)).value
