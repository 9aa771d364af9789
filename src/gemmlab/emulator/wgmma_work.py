"""One warp's part of a warpgroup multiplication, and copies of its accumulators between registers and memory."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES, ROW
from gemmlab.emulator.raw import Raw
from gemmlab.emulator.small_floats import half_of, pack_halves
from gemmlab.emulator.wgmma_layout import ROWS, SUMS, Flight, Shape
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I32, I64
from gemmlab.ir.values import Value


@dataclass(frozen=True, slots=True)
class Work:
    """One warp's multiplication during its execution: its warp, the warp's `Flight`, and the entry in that."""

    fn: Function
    module: Module
    warp: Raw
    flight: Raw
    entry: Raw

    def part(self, offset: int) -> Value:
        """Return a pointer to i32 to the part of the `Flight` at byte `offset`."""
        return self.flight.at(offset, I32)

    def code(self, position: int) -> Value:
        """Return the 4-bit number at a bit position of the `Shape`."""
        return (self.entry.load(Flight.ENTRY_SHAPE, I64) >> position) & 15

    def flag(self, bit: int) -> Value:
        """Return 1 if the `Shape` has this flag, else 0."""
        return (self.entry.load(Flight.ENTRY_SHAPE, I64) >> (bit.bit_length() - 1)) & 1

    @property
    def columns(self) -> Value:
        return (self.entry.load(Flight.ENTRY_SHAPE, I64) >> Shape.COLUMNS) & 0xFFF


def _registers(work: Work, start: Value, block: Value, pair: int, half: bool) -> Value:
    """Return the address of the accumulator's registers for 8 columns, `block` * 8 to `block` * 8 + 7, and 8 rows.

    `start` is the offset of the accumulator in the warp; `pair` is 0 for rows 0 to 7, 1 for rows 8 to 15. These are two
    registers, or one if `half` (FP16).
    """
    number = block * 2 + pair if half else block * 4 + 2 * pair
    return work.warp.at(start + number * ROW, I32)


def load_sums(work: Work) -> None:
    """Emit copies of the accumulator from registers to memory; FP16 becomes float32.

    If the multiplication reads no accumulator, the memory is filled with zeros.

    With g = lane / 4 and t = lane % 4, a lane has columns 8 j + 2 t and 8 j + 2 t + 1 of rows g and g + 8.
    """
    fn, sums, columns = work.fn, work.part(Flight.SUMS), work.columns
    start = work.entry.load(Flight.ENTRY_SOURCE, I64)
    with fn.range(columns * ROWS // LANES) as index:
        fn.store(sums + index * LANES, fn.constant(0, fn.load(sums, LANES).type))
    for name in ("F16", ""):
        half = name == "F16"
        chosen = work.code(Shape.SUM).equals(SUMS["F16"]) if half else work.code(Shape.SUM).differs(SUMS["F16"])
        with fn.when(start.differs(0)), fn.when(chosen), fn.range(columns // 8) as block:
            for pair in range(2):
                words = _registers(work, start, block, pair, half)
                first = Lanes(fn.load(words, LANES))
                if half:
                    even, odd = (half_of(first, part).bits("i32") for part in (0, 1))
                else:
                    even, odd = first, Lanes(fn.load(words + LANES, LANES))
                for g in range(8):
                    pattern = [4 * g + t + LANES * part for t in range(4) for part in range(2)]
                    row = fn.shuffle(even.value, odd.value, pattern)
                    fn.store(sums + (columns * (g + 8 * pair) + block * 8), row)


def store_sums(work: Work) -> None:
    fn, sums, columns = work.fn, work.part(Flight.SUMS), work.columns
    start = work.entry.load(Flight.ENTRY_TARGET, I64)
    tile = fn.scratch(I32, 2 * LANES)
    for half in (True, False):
        chosen = work.code(Shape.SUM).equals(SUMS["F16"]) if half else work.code(Shape.SUM).differs(SUMS["F16"])
        with fn.when(chosen), fn.range(columns // 8) as block:
            for pair in range(2):
                for g in range(8):
                    row = fn.load(sums + (columns * (g + 8 * pair) + block * 8), 8)
                    fn.store(tile + 8 * g, row)
                low, high = fn.load(tile, LANES), fn.load(tile + LANES, LANES)
                even, odd = (
                    Lanes(fn.shuffle(low, high, [8 * (lane // 4) + 2 * (lane % 4) + part for lane in range(LANES)]))
                    for part in range(2)
                )
                words = _registers(work, start, block, pair, half)
                if half:
                    fn.store(words, pack_halves(even.bits("f32"), odd.bits("f32")).value)
                else:
                    fn.store(words, even.value)
                    fn.store(words + LANES, odd.value)
