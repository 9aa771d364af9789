"""Execution of one warp's part of a warpgroup multiplication: decode operands, multiply, write the accumulator."""

from __future__ import annotations

from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES, ROW, Block, Warp
from gemmlab.emulator.raw import Raw
from gemmlab.emulator.wgmma_arithmetic import NARROW, SATURATE
from gemmlab.emulator.wgmma_layout import FORMATS, OPERAND_BYTES, OPERANDS, ROWS, SUMS, WARPGROUP, Flight, Shape
from gemmlab.emulator.wgmma_work import Work, load_sums, store_sums
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64, pointer
from gemmlab.ir.values import Value

LEFT_OPERAND, RIGHT_OPERAND = OPERANDS
MULTIPLY = (("warp", pointer(I8)), ("flight", pointer(I8)))
SIGN = -0x80000000


def emit_multiply(fn: Function, module: Module) -> None:
    """Emit the body of `multiply(warp, entry)`: fetch operands, multiply, and write the accumulator."""
    warp = Raw(fn, fn.args[0])
    flight = Raw(fn, fn.cast(warp.load(Warp.FLIGHT, I64), I8))
    work = Work(fn, module, warp, flight, Raw(fn, fn.args[1]))
    bytes_of = fn.var(I64, 1)
    for format_ in FORMATS.values():
        with fn.when(work.code(Shape.A).equals(format_.code)):
            bytes_of.set(format_.bits // 8)
    depth = fn.constant(OPERAND_BYTES, I64) // bytes_of.read()
    _left(work, depth)
    _right(work, depth)
    load_sums(work)
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
    store_sums(work)
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    block.add(Block.EPOCH, 1)
    fn.finish()


def _insn(work: Work) -> Value:
    return work.fn.cast(work.entry.load(Flight.ENTRY_INSN, I64), I8)


def emit_compare_proxies(fn: Function, module: Module) -> None:
    """Emit the body of `compare_proxies(warp, entry)`: check a multiplication's operands in shared memory at its issue.

    It reports writes without a proxy fence, stores of other blocks that nothing orders before the issue, and, for the
    first warp of a warpgroup, operands written in a swizzle pattern that begins elsewhere. It does nothing if races are
    not checked.
    """
    warp = Raw(fn, fn.args[0])
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    with fn.when(block.load(Block.RACES, I64).differs(0)):
        flight = Raw(fn, fn.cast(warp.load(Warp.FLIGHT, I64), I8))
        work = Work(fn, module, warp, flight, Raw(fn, fn.args[1]))
        first = Lanes(warp.load(Warp.INDEX, I64) & (WARPGROUP - 1)).eq(0).value
        with fn.when(work.flag(Shape.REGISTERS).equals(0)):
            _fetch_left(work, issue=1)
            with fn.when(first):
                _compare_base(work, Flight.ENTRY_A, LEFT_OPERAND)
        _fetch_right(work, issue=1)
        with fn.when(first):
            _compare_base(work, Flight.ENTRY_B, RIGHT_OPERAND)
    fn.finish()


def _compare_base(work: Work, descriptor: int, operand: int) -> None:
    word = work.entry.load(descriptor, I64)
    work.fn.call(work.module["operand_base"], work.warp.base, _insn(work), word, operand)


def _fetch_left(work: Work, issue: int) -> None:
    fn = work.fn
    number = work.warp.load(Warp.INDEX, I64) & (WARPGROUP - 1)
    transposed = work.flag(Shape.TRANSPOSE_A)
    by_row = fn.select(transposed.differs(0), 0, number * ROWS)
    by_chunk = fn.select(transposed.differs(0), number * 2, 0)
    fn.call(
        work.module["fetch"], work.warp.base, _insn(work), work.entry.base, work.entry.load(Flight.ENTRY_A, I64),
        transposed, by_row, ROWS, by_chunk, 2, work.flight.at(Flight.BYTES_A, I8), issue,
        LEFT_OPERAND,
    )  # fmt: skip


def _fetch_right(work: Work, issue: int) -> None:
    fn, columns = work.fn, work.columns
    transposed = work.flag(Shape.TRANSPOSE_B)
    rows = fn.select(transposed.differs(0), ROWS, columns)
    chunks = fn.select(transposed.differs(0), columns // 8, 2)
    fn.call(
        work.module["fetch"], work.warp.base, _insn(work), work.entry.base, work.entry.load(Flight.ENTRY_B, I64),
        transposed, 0, rows, 0, chunks, work.flight.at(Flight.BYTES_B, I8), issue,
        RIGHT_OPERAND,
    )  # fmt: skip


def _left(work: Work, depth: Value) -> None:
    """Emit the decoding of this warp's 16 rows of A to numbers: row-major, `depth` in a row."""
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
            # Only 16-bit types may be transposed: A has 16 rows along k, of 16 elements along m each.
            rows, powers = fn.scratch(I32, ROWS * ROWS), fn.scratch(I32, ROWS * ROWS)
            fn.call(work.module["decode"], to, code, ROWS * ROWS, rows, powers)
            with fn.range(ROWS) as k, fn.range(ROWS) as m:
                factors[m * ROWS + k] = rows[k * ROWS + m]
                exponents[m * ROWS + k] = powers[k * ROWS + m]
        with choice.no():
            fn.call(work.module["decode"], to, code, depth * ROWS, factors, exponents)
    _negate(work, Shape.NEGATE_A, factors, depth * ROWS)


def _from_registers(work: Work, to: Value) -> None:
    """Emit copies of A's fragment from registers to memory.

    With g = lane / 4 and t = lane % 4, register r has word t + 4 (r / 2) of row g + 8 (r % 2).
    """
    fn = work.fn
    start = work.entry.load(Flight.ENTRY_REGISTERS, I64)
    words = fn.cast(to, I32)
    with fn.range(4) as register, fn.range(LANES) as lane:
        row = (lane // 4) + (register & 1) * 8
        word = (lane & 3) + (register // 2) * 4
        source = work.warp.at(start + register * ROW, I32)
        words[row * (OPERAND_BYTES // 4) + word] = source[lane]


def _right(work: Work, depth: Value) -> None:
    """Emit the decoding of B to numbers: `depth` rows along k; a row has as many as there are columns."""
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


def _negate(work: Work, flag: int, factors: Value, count: Value) -> None:
    fn = work.fn
    with fn.when(work.flag(flag).differs(0)), fn.range(count) as index:
        factors[index] = (Lanes(factors[index]) ^ SIGN).value
