"""Races of a warpgroup multiplication's operands in shared memory.

A multiplication may read its operands at any time between its issue and the end of the wait for its group. So each
write must be ordered before the issue, or after the wait. At the wait, the last writer of each element is compared with
what the warp knew of it at the issue: a later write is a hazard, whether barriers are between or not. The read itself
is recorded as one at the wait, so that later writes are compared with it as with any other read.
"""

from __future__ import annotations

from gemmlab.emulator.instruction_layout import Insn, Kind
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES, Block, Warp
from gemmlab.emulator.races import ELEMENT, READ_BY, READ_CLOCK, READ_SYNC, WRITER, WRITER_CLOCK, WRITER_INSTRUCTION
from gemmlab.emulator.raw import Raw
from gemmlab.emulator.wgmma_layout import Flight
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64, pointer

OPERAND_RACE = (("warp", pointer(I8)), ("insn", pointer(I8)), ("flight", pointer(I8)), ("address", I64))
CHUNK = 16
KNOW = OPERAND_RACE[:1] + OPERAND_RACE[2:3]


def emit_know(fn: Function) -> None:
    """Body of `know(warp, entry)`: store the clocks that a warp knows at an issue, and let its own clock advance."""
    warp, entry = Raw(fn, fn.args[0]), Raw(fn, fn.args[1])
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    with fn.when(block.load(Block.RACES, I64).differs(0)):
        index = warp.load(Warp.INDEX, I64)
        row = fn.cast(block.load(Block.CLOCKS, I64), I32) + index * LANES
        fn.store(entry.at(Flight.ENTRY_KNOWN, I32), fn.load(row, LANES))
        row[index] = (Lanes(row[index]) + 1).value
    fn.finish()


def emit_operand_race(fn: Function, module: Module) -> None:
    """Body of `operand_race(warp, insn, entry, address)`: check 16 bytes that a multiplication reads."""
    warp_ptr, insn_ptr, entry_ptr, address = fn.args
    warp, insn, entry = Raw(fn, warp_ptr), Raw(fn, insn_ptr), Raw(fn, entry_ptr)
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    shift = Lanes(block.load(Block.RACE_SHIFT, I64))
    low = block.load(Block.SHARED_LOW, I64)
    shadow = fn.cast(block.load(Block.RACES, I64), I8)
    index = warp.load(Warp.INDEX, I64)
    clocks = fn.cast(block.load(Block.CLOCKS, I64), I32)
    clock = clocks[index * LANES + index]
    sync = fn.convert(warp.load(Warp.SYNCS, I64), I32)
    known = entry.at(Flight.ENTRY_KNOWN, I32)
    number = (Lanes(insn.load(Insn.INDEX, I64)).trunc("i32") << 11).value
    first = Lanes(address - low) >> shift
    with fn.range((Lanes(fn.constant(CHUNK, I64)) >> shift).value) as part:
        where = first.value + part
        element = Raw(fn, shadow + where * ELEMENT)
        writer = Lanes(element.load(WRITER)).zext("i64")
        late = Lanes(element.load(WRITER_CLOCK)).gt(Lanes(known[(writer >> 5).value]))
        with fn.when(late.value):
            at = low + (Lanes(where) << shift).value
            other = fn.convert(element.load(WRITER_INSTRUCTION), I64)
            fn.call(module["note"], warp_ptr, insn_ptr, Kind.OVERWRITTEN, 0, at, (writer << 32).value, other)
        element.store(index * 4 + READ_CLOCK, clock)
        element.store(index * 4 + READ_SYNC, sync)
        element.store(index * 4 + READ_BY, number)
    fn.finish()
