"""Copies of a thread's predicates to bits of a register, and back."""

from __future__ import annotations

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes, lane_mask
from gemmlab.emulator.layout import Warp

COUNT = 7
"""Number of predicates that are copied, P0 to P6; PT is not among them."""
_BYTES = {"B1": 8, "B2": 16, "B3": 24}


@opcode("P2R", "UP2UR")
def p2r(x: Form) -> None:
    """Copy the predicates that a mask selects to the low byte, or another one (`.B1`); all other bits come from `a`."""
    x.allow(*_BYTES)
    d = x.dest()
    x.take("special", "text")
    a, mask = x.source(), x.source() & ((1 << COUNT) - 1)
    shift = _BYTES.get(x.one_of(*_BYTES), 0)
    bits = a.like(0)
    for number in range(COUNT):
        word = x.warp.load(Warp.predicate(number, uniform=x.uniform))
        bits = bits | lane_mask(word, x.lanes).zext("i32") << number
    d.set((a & ~(mask << shift)) | ((bits & mask) << shift))


@opcode("R2P", "UR2UP")
def r2p(x: Form) -> None:
    """Set predicates from the bits of a byte; with a mask, only those that it selects."""
    x.allow(suffixes=tuple(_BYTES))
    x.take("special", "text")
    operand = x.peek()
    bits = x.source()
    if operand is not None and operand.suffix:
        bits = bits >> _BYTES[operand.suffix[0]]
    mask = x.source() if x.left else x.constant(-1)
    execute = Lanes(x.exec_bits)
    for number in range(COUNT):
        place = Warp.predicate(number, write=True, uniform=x.uniform)
        chosen = _bit(mask, number)
        if not x.uniform:
            chosen = chosen & execute
        old = Lanes(x.warp.load(place))
        x.warp.store(place, ((_bit(bits, number) & chosen) | (old & ~chosen)).value)


def _bit(value: Lanes, number: int) -> Lanes:
    return (value & (1 << number)).ne(0).mask_bits()
