"""Comparisons of stored values: with the bytes that are there already, or with those of another lane of the same store.

They are functions of their own: few accesses need them, and the check for races that calls them is in every access.
"""

from __future__ import annotations

from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES
from gemmlab.ir.function import Function
from gemmlab.ir.types import I8, I32, I64, pointer
from gemmlab.ir.values import Value

CHANGES = (("host", I64), ("words", pointer(I32)), ("start", I64), ("count", I64), ("lane", I64))
DIFFERS = (
    ("words", pointer(I32)), ("start", I64), ("lane", I64), ("other_start", I64), ("other_lane", I64), ("count", I64),
)  # fmt: skip


def emit_store_changes(fn: Function) -> None:
    """Emit the body of `store_changes`, which returns 1 if a lane's store changes a byte of an element, else 0.

    The element has `count` bytes at the host address `host`. `words` are the words that the warp stores, a row of lanes
    each; `start` is the element's byte offset in the access.
    """
    host, words, start, count, lane = fn.args
    old, new, found = fn.cast(host, I8), fn.cast(words, I8), fn.var(I32, 0)
    with fn.range(count) as byte, fn.when(fn.load(old + byte).differs(fn.load(new + _place(start, byte, lane)))):
        found.set(1)
    fn.finish(found.read())


def emit_stores_differ(fn: Function) -> None:
    """Emit the body of `stores_differ`, which returns 1 if two lanes store different bytes into an element, else 0.

    The element has `count` bytes; `start` and `other_start` are its byte offsets in the two lanes' accesses.
    """
    words, start, lane, other_start, other_lane, count = fn.args
    both, found = fn.cast(words, I8), fn.var(I32, 0)
    with fn.range(count) as byte:
        one, other = fn.load(both + _place(start, byte, lane)), fn.load(both + _place(other_start, byte, other_lane))
        with fn.when(one.differs(other)):
            found.set(1)
    fn.finish(found.read())


def _place(start: Value, byte: Value, lane: Value) -> Value:
    """Return the byte offset, in the words that the warp stores, of byte `start + byte` of a lane's store."""
    place = Lanes(byte + start)
    return (((place >> 2) * LANES + Lanes(lane)) * 4 + (place & 3)).value
