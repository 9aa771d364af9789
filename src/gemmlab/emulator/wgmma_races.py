"""Races between a warpgroup multiplication's reads of shared memory and writes of its operands.

A multiplication may read its operands at any time between its issue and the end of the wait for its group. So each
write must be ordered before the issue, or after the wait. At the wait, the last write of each element is compared with
the warp's vector clock at the issue: a write that is not ordered before the issue is a hazard. The read is recorded
with a clock that only warps that wait for the multiplication take over (`MULTIPLYING_WARPS`). So later writes are
compared with it as with any other read, and a barrier between issue and wait does not order them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gemmlab.emulator.instruction_layout import Insn, Kind, Space
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES, ROW, Block, Warp
from gemmlab.emulator.races import (
    BY_PROXY,
    ELEMENT,
    READ_BY,
    READ_CLOCK,
    READ_SYNC,
    WRITER,
    WRITER_CLOCK,
    WRITER_FENCES,
    WRITER_INSTRUCTION,
)  # fmt: skip
from gemmlab.emulator.raw import Raw
from gemmlab.emulator.wgmma_layout import MULTIPLYING_WARPS, WARPGROUP_SHIFT, Flight
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64, pointer
from gemmlab.ir.values import Value

OPERAND_RACE = (
    ("warp", pointer(I8)), ("insn", pointer(I8)), ("flight", pointer(I8)), ("address", I64), ("operand", I64),
)  # fmt: skip
CHUNK = 16
SHARED = Space.SHARED * 65536
"""Bits of an event's `extra` for shared memory."""
KNOW = OPERAND_RACE[:1] + OPERAND_RACE[2:3]


def column_of(fn: Function, block: Raw, index: Value) -> tuple[Value, Value]:
    """Return the column of vector clocks for the multiplications of warp number `index`, and its clock before the first
    one; in a block of more than `MULTIPLYING_WARPS` the warp's own column, and 0.
    """
    apart = Lanes(block.load(Block.WARP_COUNT, I64)).le(MULTIPLYING_WARPS)
    last = Lanes(fn.constant(LANES - 1, I64)) - (Lanes(index) >> WARPGROUP_SHIFT)
    column = apart.select(last, Lanes(index)).value
    # No warp has this row, so its own clock stays as it was when the block began.
    start = fn.cast(block.load(Block.CLOCKS, I64), I32)[column * (LANES + 1)]
    return column, apart.select(Lanes(start), Lanes(fn.constant(0, I32))).value


def emit_know(fn: Function) -> None:
    """Emit the body of `know(warp, entry)`: store a warp's vector clock at an issue, and advance its own clock.

    It does nothing if races are not checked.
    """
    warp, entry = Raw(fn, fn.args[0]), Raw(fn, fn.args[1])
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    with fn.when(block.load(Block.RACES, I64).differs(0)):
        index = warp.load(Warp.INDEX, I64)
        row = fn.cast(block.load(Block.CLOCKS, I64), I32) + index * LANES
        fn.store(entry.at(Flight.ENTRY_KNOWN, I32), fn.load(row, LANES))
        row[index] = (Lanes(row[index]) + 1).value
    fn.finish()


@dataclass(frozen=True, slots=True)
class Elements:
    """The shadow's elements for 16 bytes of shared memory that a multiplication reads."""

    fn: Function
    block: Raw
    address: Value

    @contextmanager
    def each(self) -> Iterator[tuple[Raw, Value]]:
        """Emit a loop over the elements; yield (element, its shared address) for the loop's body."""
        fn, low = self.fn, self.block.load(Block.SHARED_LOW, I64)
        shift = Lanes(self.block.load(Block.RACE_SHIFT, I64))
        shadow = fn.cast(self.block.load(Block.RACES, I64), I8)
        first = Lanes(self.address - low) >> shift
        with fn.range((Lanes(fn.constant(CHUNK, I64)) >> shift).value) as part:
            where = first.value + part
            yield Raw(fn, shadow + where * ELEMENT), low + (Lanes(where) << shift).value


def emit_operand_race(fn: Function, module: Module) -> None:
    """Emit the body of `operand_race(...)` (arguments: `OPERAND_RACE`): check 16 bytes that a multiplication reads, at
    its execution, and record the read.
    """
    warp_ptr, insn_ptr, entry_ptr, address, operand = fn.args
    warp, insn, entry = Raw(fn, warp_ptr), Raw(fn, insn_ptr), Raw(fn, entry_ptr)
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    index = warp.load(Warp.INDEX, I64)
    sync = fn.convert(warp.load(Warp.SYNCS, I64), I32)
    known = entry.at(Flight.ENTRY_KNOWN, I32)
    column, start = column_of(fn, block, index)
    issue = Lanes(start) + Lanes(entry.load(Flight.ENTRY_NUMBER, I64)).trunc("i32")
    clock = Lanes(start).ne(0).select(issue, Lanes(known[index])).value
    number = (Lanes(insn.load(Insn.INDEX, I64)).trunc("i32") << 11).value
    with Elements(fn, block, address).each() as (element, at):
        writer = Lanes(element.load(WRITER)).zext("i64")
        late = Lanes(element.load(WRITER_CLOCK)).gt(Lanes(known[(writer >> 5).value]))
        with fn.when(late.value):
            other = fn.convert(element.load(WRITER_INSTRUCTION), I64)
            extra = (writer << 32).value + operand + SHARED
            fn.call(module["note"], warp_ptr, insn_ptr, Kind.OVERWRITTEN, 0, at, extra, other)
        element.store(column * 4 + READ_CLOCK, clock)
        element.store(column * 4 + READ_SYNC, sync)
        element.store(column * 4 + READ_BY, number)
    fn.finish()


def emit_operand_proxy(fn: Function, module: Module) -> None:
    """Emit the body of `operand_proxy(...)` (arguments: `OPERAND_RACE`), called when a multiplication is issued.

    It reports writes of 16 bytes of an operand without a proxy fence. PTX requires one somewhere on the path that
    orders the write before the multiplication ("proxy-preserved base causality order"): either by the writing thread
    before a barrier, or by all lanes of the multiplying warp after it.
    """
    warp_ptr, insn_ptr, entry_ptr, address, operand = fn.args
    own = Raw(fn, fn.cast(Raw(fn, warp_ptr).load(Warp.FLIGHT, I64), I8)).at(Flight.FENCED, I32)
    known = Raw(fn, entry_ptr).at(Flight.ENTRY_KNOWN, I32)
    block = Raw(fn, fn.cast(Raw(fn, warp_ptr).load(Warp.BLOCK, I64), I8))
    warps, size = fn.cast(block.load(Block.WARPS, I64), I8), block.load(Block.WARP_SIZE, I64)
    with Elements(fn, block, address).each() as (element, at):
        writer, fences = Lanes(element.load(WRITER)).zext("i64"), element.load(WRITER_FENCES)
        there = Raw(fn, warps + (writer >> 5).value * size)
        before, so_far = Lanes(fences), Lanes(there.load((writer & 31).value * 4 + Warp.PROXY_FENCES))
        flight = Raw(fn, fn.cast(there.load(Warp.FLIGHT, I64), I8))
        turn = (before & (Flight.FENCE_TURNS - 1)).zext("i64")
        first = Lanes(flight.load((turn * ROW + (writer & 31) * 4 + Flight.FENCES).value))
        # The thread's first fence after the write must be ordered before the multiplication. The clocks of old fences
        # are no longer in the ring.
        clock = Lanes(known[(writer >> 5).value])
        late = first.gt(clock) & (so_far - before).le(Flight.FENCE_TURNS)
        # A write that nothing orders before the issue is a race, which `operand_race` reports.
        written = Lanes(element.load(WRITER_CLOCK))
        ordered = written.le(clock) & before.ne(BY_PROXY) & written.gt(Lanes(own[(writer >> 5).value]))
        with fn.when((ordered & (so_far.le(before) | late)).value):
            other = fn.convert(element.load(WRITER_INSTRUCTION), I64)
            extra = (writer << 32).value + operand + SHARED
            fn.call(module["note"], warp_ptr, insn_ptr, Kind.PROXY, 0, at, extra, other)
    fn.finish()
