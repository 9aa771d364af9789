"""Warpgroup multiplications in flight: put into a queue when issued, executed at the wait for their group.

That is the latest moment that the hardware may read the operands and write the accumulators. Each warp of a warpgroup
has its own 16 of the 64 rows, its own queue and its own waits.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES, ROW, Block, Warp
from gemmlab.emulator.raw import Raw
from gemmlab.emulator.small_floats import half_of, pack_halves
from gemmlab.emulator.wgmma_arithmetic import NARROW, SATURATE
from gemmlab.emulator.wgmma_layout import FORMATS, OPERAND_BYTES, ROWS, SUMS, WARPGROUP, Flight, Shape
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64, pointer
from gemmlab.ir.values import Value

ISSUE = (
    ("warp", pointer(I8)), ("insn", pointer(I8)), ("a", I64), ("b", I64), ("shape", I64), ("source", I64),
    ("target", I64), ("registers", I64), ("closes", I64),
)  # fmt: skip
"""As `Flight`'s entries; `closes`: 1 if the multiplication is the last of its group. Without a target it does nothing
else."""
WAIT = (("warp", pointer(I8)), ("insn", pointer(I8)), ("left", I64))
MULTIPLY = (("warp", pointer(I8)), ("flight", pointer(I8)))
SIGN = -0x80000000


def emit_issue(fn: Function, module: Module) -> None:
    """Body of `issue_wgmma(...)`: append an entry, and land the oldest one if there is no room."""
    warp_ptr, _insn, *_rest = fn.args
    warp = Raw(fn, warp_ptr)
    flight = Raw(fn, fn.cast(warp.load(Warp.FLIGHT, I64), I8))
    insn, a, b, shape, source, target, registers, closes = fn.args[1:]
    with fn.when(target.differs(0)):
        with fn.when(flight.load(Flight.COUNT, I64) >= Flight.CAPACITY):
            fn.call(module["land_oldest"], warp_ptr)
        entry = entry_at(fn, flight, flight.load(Flight.COUNT, I64))
        number = insn.fn.emit(I64, f"ptrtoint ptr {insn.name} to i64")
        for offset, value in (
            (Flight.ENTRY_INSN, number), (Flight.ENTRY_A, a), (Flight.ENTRY_B, b), (Flight.ENTRY_SHAPE, shape),
            (Flight.ENTRY_SOURCE, source), (Flight.ENTRY_TARGET, target), (Flight.ENTRY_REGISTERS, registers),
            (Flight.ENTRY_GROUP, flight.load(Flight.GROUP, I64)),
        ):  # fmt: skip
            entry.store(offset, value, I64)
        fn.call(module["know"], warp_ptr, entry.base)
        fn.call(module["compare_proxies"], warp_ptr, entry.base)
        flight.add(Flight.COUNT, 1)
        with fn.when(flight.load(Flight.RANDOM, I64).differs(0)):
            _land_at_random(fn, module, flight)
    flight.store(Flight.GROUP, flight.load(Flight.GROUP, I64) + closes, I64)
    fn.finish()


def _land_at_random(fn: Function, module: Module, flight: Raw) -> None:
    """Land the oldest multiplications until a coin says no (Knuth's linear congruential generator, MMIX)."""
    with fn.loop() as done:
        state = Lanes(flight.load(Flight.RANDOM, I64)) * 6364136223846793005 + 1442695040888963407
        flight.store(Flight.RANDOM, state.value, I64)
        fn.leave_if(done, flight.load(Flight.COUNT, I64).equals(0))
        fn.leave_if(done, state.lt(0).value)
        fn.call(module["land_oldest"], fn.args[0])


def entry_at(fn: Function, flight: Raw, index: Value | int) -> Raw:
    """The entry number `index`."""
    return Raw(fn, flight.base + (fn.constant(index, I64) * Flight.ENTRY_SIZE + Flight.ENTRY))


def emit_land_oldest(fn: Function, module: Module) -> None:
    """Body of `land_oldest(warp)`: execute the oldest multiplication in flight and remove it."""
    (warp_ptr,) = fn.args
    flight = Raw(fn, fn.cast(Raw(fn, warp_ptr).load(Warp.FLIGHT, I64), I8))
    fn.call(module["multiply"], warp_ptr, entry_at(fn, flight, 0).base)
    left = flight.load(Flight.COUNT, I64) - 1
    flight.store(Flight.COUNT, left, I64)
    with fn.range(left) as index:
        to, source = entry_at(fn, flight, index), entry_at(fn, flight, index + 1)
        for offset in range(0, Flight.ENTRY_SIZE, ROW // 2):
            fn.store(to.at(offset, I32), fn.load(source.at(offset, I32), LANES // 2))
    fn.finish()


def emit_wait(fn: Function, module: Module) -> None:
    """Body of `wait_wgmma(warp, insn, left)`: land all groups but the last `left`."""
    warp_ptr, _insn, left = fn.args
    warp = Raw(fn, warp_ptr)
    flight = Raw(fn, fn.cast(warp.load(Warp.FLIGHT, I64), I8))
    limit = flight.load(Flight.GROUP, I64) - left
    with fn.loop() as done:
        fn.leave_if(done, flight.load(Flight.COUNT, I64).equals(0))
        first = entry_at(fn, flight, 0).load(Flight.ENTRY_GROUP, I64)
        fn.leave_if(done, first >= limit)
        fn.call(module["land_oldest"], warp_ptr)
    # What a lane writes behind the wait does not race with what the multiplications read for other lanes.
    warp.add(Warp.SYNCS, 1)
    fn.finish()


@dataclass(frozen=True, slots=True)
class _Work:
    """One multiplication of one warp being executed."""

    fn: Function
    module: Module
    warp: Raw
    flight: Raw
    entry: Raw

    def part(self, offset: int) -> Value:
        """A part of the space for operands."""
        return self.flight.at(offset, I32)

    def code(self, position: int) -> Value:
        """A 4-bit number of the shape."""
        return (self.entry.load(Flight.ENTRY_SHAPE, I64) >> position) & 15

    def flag(self, bit: int) -> Value:
        """1 if the shape has this flag."""
        return (self.entry.load(Flight.ENTRY_SHAPE, I64) >> (bit.bit_length() - 1)) & 1

    @property
    def columns(self) -> Value:
        return (self.entry.load(Flight.ENTRY_SHAPE, I64) >> Shape.COLUMNS) & 0xFFF


def emit_multiply(fn: Function, module: Module) -> None:
    """Body of `multiply(warp, entry)`: fetch operands, multiply, and write the accumulator."""
    warp = Raw(fn, fn.args[0])
    flight = Raw(fn, fn.cast(warp.load(Warp.FLIGHT, I64), I8))
    work = _Work(fn, module, warp, flight, Raw(fn, fn.args[1]))
    bytes_of = fn.var(I64, 1)
    for format_ in FORMATS.values():
        with fn.when(work.code(Shape.A).equals(format_.code)):
            bytes_of.set(format_.bits // 8)
    depth = fn.constant(OPERAND_BYTES, I64) // bytes_of.read()
    _left(work, depth)
    _right(work, depth)
    _load_sums(work)
    kind = fn.var(I64, work.code(Shape.SUM))
    with fn.when(bytes_of.read().equals(1)):
        kind += NARROW
    with fn.when(work.flag(Shape.SATURATE).differs(0)):
        kind += SATURATE
    arguments = [
        work.part(at)
        for at in (Flight.FACTORS_A, Flight.EXPONENTS_A, Flight.FACTORS_B, Flight.EXPONENTS_B, Flight.SUMS)
    ]
    with fn.choose(work.code(Shape.SUM).equals(SUMS["S32"])) as choice:
        with choice.yes():
            fn.call(module["sum_integers"], *arguments, depth, work.columns, kind.read())
        with choice.no():
            fn.call(module["sum_floats"], *arguments, depth, work.columns, kind.read())
    _store_sums(work)
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    block.add(Block.EPOCH, 1)
    fn.finish()


def _insn(work: _Work) -> Value:
    return work.fn.cast(work.entry.load(Flight.ENTRY_INSN, I64), I8)


def emit_compare_proxies(fn: Function, module: Module) -> None:
    """Body of `compare_proxies(warp, entry)`: check at the issue that the operands' writers have executed fences."""
    warp = Raw(fn, fn.args[0])
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    with fn.when(block.load(Block.RACES, I64).differs(0)):
        flight = Raw(fn, fn.cast(warp.load(Warp.FLIGHT, I64), I8))
        work = _Work(fn, module, warp, flight, Raw(fn, fn.args[1]))
        with fn.when(work.flag(Shape.REGISTERS).equals(0)):
            _fetch_left(work, issue=1)
        _fetch_right(work, issue=1)
    fn.finish()


def _fetch_left(work: _Work, issue: int) -> None:
    fn = work.fn
    number = work.warp.load(Warp.INDEX, I64) & (WARPGROUP - 1)
    transposed = work.flag(Shape.TRANSPOSE_A)
    by_row = fn.select(transposed.differs(0), 0, number * ROWS)
    by_chunk = fn.select(transposed.differs(0), number * 2, 0)
    fn.call(
        work.module["fetch"], work.warp.base, _insn(work), work.entry.base, work.entry.load(Flight.ENTRY_A, I64),
        transposed, by_row, ROWS, by_chunk, 2, work.flight.at(Flight.BYTES_A, I8), issue,
    )  # fmt: skip


def _fetch_right(work: _Work, issue: int) -> None:
    fn, columns = work.fn, work.columns
    transposed = work.flag(Shape.TRANSPOSE_B)
    rows = fn.select(transposed.differs(0), ROWS, columns)
    chunks = fn.select(transposed.differs(0), columns // 8, 2)
    fn.call(
        work.module["fetch"], work.warp.base, _insn(work), work.entry.base, work.entry.load(Flight.ENTRY_B, I64),
        transposed, 0, rows, 0, chunks, work.flight.at(Flight.BYTES_B, I8), issue,
    )  # fmt: skip


def _left(work: _Work, depth: Value) -> None:
    """A's 16 rows of this warp as numbers: row-major, `depth` in each."""
    fn, to = work.fn, work.flight.at(Flight.BYTES_A, I8)
    transposed = work.flag(Shape.TRANSPOSE_A)
    with fn.choose(work.flag(Shape.REGISTERS).differs(0)) as choice:
        with choice.yes():
            _from_registers(work, to)
        with choice.no():
            _fetch_left(work, issue=0)
    factors, exponents = work.part(Flight.FACTORS_A), work.part(Flight.EXPONENTS_A)
    code = work.code(Shape.A)
    with fn.choose(transposed.differs(0)) as choice:
        with choice.yes():
            # 16-bit types only: 16 rows along k of 16 elements along m.
            rows, powers = fn.scratch(I32, ROWS * ROWS), fn.scratch(I32, ROWS * ROWS)
            fn.call(work.module["decode"], to, code, ROWS * ROWS, rows, powers)
            with fn.range(ROWS) as k, fn.range(ROWS) as m:
                factors[m * ROWS + k] = rows[k * ROWS + m]
                exponents[m * ROWS + k] = powers[k * ROWS + m]
        with choice.no():
            fn.call(work.module["decode"], to, code, depth * ROWS, factors, exponents)
    _negate(work, Shape.NEGATE_A, factors, depth * ROWS)


def _from_registers(work: _Work, to: Value) -> None:
    """A's fragment: with g = lane / 4 and t = lane % 4, word t + 4 (r / 2) of row g + 8 (r % 2) is in register r."""
    fn = work.fn
    start = work.entry.load(Flight.ENTRY_REGISTERS, I64)
    words = fn.cast(to, I32)
    with fn.range(4) as register, fn.range(LANES) as lane:
        row = (lane // 4) + (register & 1) * 8
        word = (lane & 3) + (register // 2) * 4
        source = work.warp.at(start + register * ROW, I32)
        words[row * (OPERAND_BYTES // 4) + word] = source[lane]


def _right(work: _Work, depth: Value) -> None:
    """B as numbers: `depth` rows along k of as many as there are columns."""
    fn, to = work.fn, work.flight.at(Flight.BYTES_B, I8)
    transposed, columns = work.flag(Shape.TRANSPOSE_B), work.columns
    _fetch_right(work, issue=0)
    factors, exponents = work.part(Flight.FACTORS_B), work.part(Flight.EXPONENTS_B)
    code = work.code(Shape.B)
    with fn.choose(transposed.differs(0)) as choice:
        with choice.yes():
            fn.call(work.module["decode"], to, code, columns * depth, factors, exponents)
        with choice.no():
            row, power = fn.scratch(I32, OPERAND_BYTES), fn.scratch(I32, OPERAND_BYTES)
            with fn.range(columns) as column:
                fn.call(work.module["decode"], to + column * OPERAND_BYTES, code, depth, row, power)
                with fn.range(depth) as k:
                    factors[k * columns + column] = row[k]
                    exponents[k * columns + column] = power[k]
    _negate(work, Shape.NEGATE_B, factors, columns * depth)


def _negate(work: _Work, flag: int, factors: Value, count: Value) -> None:
    fn = work.fn
    with fn.when(work.flag(flag).differs(0)), fn.range(count) as index:
        factors[index] = (Lanes(factors[index]) ^ SIGN).value


def _registers(work: _Work, start: Value, block: Value, pair: int, half: bool) -> Value:
    """Accumulator registers of 8 columns: a pair for the upper 8 rows, one for the lower; in FP16 one register each."""
    number = block * 2 + pair if half else block * 4 + 2 * pair
    return work.warp.at(start + number * ROW, I32)


def _load_sums(work: _Work) -> None:
    """The accumulator: with g = lane / 4 and t = lane % 4, columns 8 j + 2 t and the next of rows g and g + 8."""
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


def _store_sums(work: _Work) -> None:
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
