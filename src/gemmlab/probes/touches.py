"""The probe that records when each float of some memory ranges is used, and the values read in one of them.

Time is counted in accesses. A range has a table with the times of each float's first and last access, 0 for none. For
the last range, which has packed operands, a note is made of each read: the float's place, its value, and the time. A
read of the value that was last read at this place makes no note.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.probe import STATE, accessed_bytes
from gemmlab.ir.types import I32, I64, Type
from gemmlab.ir.values import Value

TIME, NOTED, ROOM, NOTES = 0, 1, 2, 3
"""Words of the state: accesses so far, notes so far (those without room included), the number of notes that there is
room for, and the word at which notes begin.
"""
STRETCHES, WORKSPACE = 4, 3
"""The number of ranges, and the number of the one whose values are recorded."""
FIRST = 4
"""Word at which the ranges begin; each has its first address, the address after its end, and its table's first word."""
STRETCH_WORDS, TABLE_WORDS, NOTE_WORDS = 3, 3, 3
"""Numbers of words: of a range; of a float in a table (the third is the value last read, plus 1); of a note (float, its
bits, time).
"""
_FLOAT = 4


class Touches:
    """A probe that records times and values. `observe/element_use.py` clears the state and writes ranges and places of
    tables into it.
    """

    name = "touches"

    def __init__(self, words: int = FIRST + STRETCHES * STRETCH_WORDS) -> None:
        self.words = words

    def prepare(self, module: Module) -> None:
        """Emit the function `touch(address, bytes, write)`, which records one access."""
        module.imported(STATE)
        with module.function("touch", [("address", I64), ("size", I64), ("write", I64)]) as fn:
            address, size, write = fn.args
            state = fn.symbol(f"@{STATE}", I64)
            now = state[TIME] + 1
            state[TIME] = now
            with fn.range(STRETCHES) as number:
                stretch = state + number * STRETCH_WORDS + FIRST
                begin, end, table = (stretch[word] for word in range(STRETCH_WORDS))
                with fn.when((address >= begin) & (address < end)), fn.range(size // _FLOAT) as lane:
                    at = (address - begin) // _FLOAT + lane
                    place = state + table + at * TABLE_WORDS
                    with fn.when(place[0].equals(0)):
                        place[0] = now
                    place[1] = now
                    with fn.when(number.equals(WORKSPACE) & write.equals(0)):
                        _note(fn, state, place, at, address + lane * _FLOAT, now)
            fn.finish()
        self._touch = fn

    def access(self, fn: Function, address: Value, type_: Type, mask: Value | None, *, write: bool) -> None:
        """Emit a call that records the access. The active lanes of a mask are assumed to be its first ones."""
        fn.call(self._touch, fn.address(address), accessed_bytes(fn, type_, mask), int(write))

    def around(self, fn: Function, callee: Function) -> AbstractContextManager[None]:  # noqa: ARG002 - as `Probe` has it
        """Do nothing: calls do not matter here."""
        return nullcontext()


def _note(fn: Function, state: Value, place: Value, at: Value, address: Value, now: Value) -> None:
    bits = fn.zero_extend(fn.cast(address, I32)[0])
    with fn.when(place[2].differs(bits + 1)):
        place[2] = bits + 1
        noted = state[NOTED]
        with fn.when(noted < state[ROOM]):
            note = state + state[NOTES] + noted * NOTE_WORDS
            note[0], note[1], note[2] = at, bits, now
        state[NOTED] = noted + 1
