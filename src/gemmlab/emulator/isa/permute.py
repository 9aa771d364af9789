"""Selection of any four of eight bytes."""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.emulator.form import Form, join
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes

_MODES: dict[str, Callable[[int, Lanes], Lanes]] = {
    "F4E": lambda number, first: first + number,
    "B4E": lambda number, first: (first - number) & 7,
    "RC8": lambda _number, first: first,
    "ECL": lambda number, first: first.umax(number),
    "ECR": lambda number, first: first.umin(number),
    "RC16": lambda number, first: ((first & 1) << 1) + (number & 1),
}
"""Mode -> index of the source byte for byte `number` of the result, from the selector's two low bits (PTX, `prmt`)."""


@opcode("PRMT", "UPRMT")
def prmt(x: Form) -> None:
    """Select four bytes of `a` (numbers 0 to 3) and `b` (4 to 7).

    Without a mode, each nibble of the selector has the number of a byte; if the nibble's top bit is set, the byte's
    sign bit is repeated instead. With a mode, the numbers follow from the selector's two low bits (`_MODES`).
    """
    x.allow(*_MODES)
    d, a, selector, b = x.dest(), x.source(), x.source(), x.source()
    pair = join(a, b)
    mode = _MODES.get(x.one_of(*_MODES))
    result = a.like(0)
    for number in range(4):
        nibble = selector >> (4 * number)
        byte = _byte(pair, nibble & 7 if mode is None else mode(number, selector & 3))
        if mode is None:
            sign = (byte << 24).arithmetic_shift(31) & 255
            byte = (nibble & 8).ne(0).select(sign, byte)
        result = result | (byte << (8 * number))
    d.set(result)


def _byte(pair: Lanes, number: Lanes) -> Lanes:
    return (pair >> (number << 3).zext("i64")).trunc("i32") & 255
