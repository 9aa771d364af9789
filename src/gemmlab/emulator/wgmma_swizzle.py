"""Operands whose swizzle does not begin where their descriptor says.

wgmma takes the pattern to begin at multiples of 256, 512 or 1024 shared bytes (swizzle 32, 64, 128), moved by the base
offset. An operand that starts elsewhere is right if its writer placed the pattern in the same way, as a tensor copy
does, and stores that swizzle whole addresses. Many kernels swizzle the distance from the start of a tile instead.

Addresses alone do not tell the two apart, but the order of the stores does: a row's chunks are written in their order
by successive threads, or one after the other. Where all rows have been written in the order of a pattern that begins at
the operand's start, the stores had that pattern; a wrong pattern orders no row.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.emulator.events import note_more
from gemmlab.emulator.instruction_layout import Kind
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import RANK_BITS
from gemmlab.emulator.layout import Block, Warp
from gemmlab.emulator.races import (
    BY_PROXY,
    ELEMENT,
    WRITER,
    WRITER_FENCES,
    WRITER_INSTRUCTION,
    WRITER_SWIZZLE,
    WRITER_TIME,
)
from gemmlab.emulator.raw import Raw
from gemmlab.emulator.wgmma_descriptor import Descriptor
from gemmlab.emulator.wgmma_races import CHUNK, SHARED
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I64, pointer
from gemmlab.ir.values import Value

OPERAND_BASE = (("warp", pointer(I8)), ("insn", pointer(I8)), ("descriptor", I64), ("operand", I64))
LINE = 128
"""Number of contiguous bytes whose 16-byte chunks the swizzle permutes with one phase of its pattern."""


@dataclass(frozen=True, slots=True)
class _Shadow:
    """The block's shared memory at `start`, a shared address, and what is known of the last writes there."""

    fn: Function
    block: Raw
    start: Value

    def element(self, offset: Value | int) -> Raw:
        """Return the element of the chunk `offset` bytes behind the start."""
        shift = Lanes(self.block.load(Block.RACE_SHIFT, I64))
        where = Lanes(self.start + offset - self.block.load(Block.SHARED_LOW, I64)) >> shift
        return Raw(self.fn, self.fn.cast(self.block.load(Block.RACES, I64), I8) + where.value * ELEMENT)

    def stored(self, offset: Value) -> Lanes:
        """Return whether a thread has written the chunk `offset` bytes behind the start."""
        state = self.fn.cast(self.block.load(Block.VALID, I64) + (self.start + offset), I64)
        whole = (Lanes(self.fn.load(state)) & Lanes(self.fn.load(state + 1))).eq(-1)
        return whole & Lanes(self.element(offset).load(WRITER_FENCES)).ne(BY_PROXY)

    def ordered(self, one: Value, two: Value) -> Lanes:
        """Return whether the chunk at offset `one` was written by an earlier thread than that at `two`; of one thread,
        by an earlier instruction or execution.
        """
        a, b = self.element(one), self.element(two)
        thread, other = Lanes(a.load(WRITER)), Lanes(b.load(WRITER))
        site, there = Lanes(a.load(WRITER_INSTRUCTION)), Lanes(b.load(WRITER_INSTRUCTION))
        by_time = Lanes(a.load(WRITER_TIME)).lt(Lanes(b.load(WRITER_TIME)))
        within = (site.eq(there) & by_time) | site.lt(there)
        return thread.lt(other) | (thread.eq(other) & within)


def emit_operand_base(fn: Function, module: Module) -> None:
    """Emit the body of `operand_base(...)` (arguments: `OPERAND_BASE`), called when a multiplication is issued.

    It records an event if the last writes had a pattern that begins elsewhere. It looks at the first eight rows of the
    operand, which are one pattern.
    """
    warp_ptr, insn, word, operand = fn.args
    warp, descriptor = Raw(fn, warp_ptr), Descriptor(word)
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    bits = descriptor.bits
    width = bits.like(1) << bits
    # A start inside a row is a step along the row.
    start = (descriptor.start >> (bits + 4)) << (bits + 4)
    address = start + (Lanes(block.load(Block.RANK, I64)) << RANK_BITS)
    moved = descriptor.base & (width - 1)
    low, high = Lanes(block.load(Block.SHARED_LOW, I64)), Lanes(block.load(Block.SHARED_HIGH, I64))
    inside = address.ge(low) & (address + width * LINE).le(high)
    away = ((start >> 7) - moved) & (width - 1)
    with fn.when((inside & (away | moved).ne(0)).value):
        shadow = _Shadow(fn, block, address.value)
        first = shadow.element(0)
        copied = Lanes(first.load(WRITER_FENCES)).eq(BY_PROXY)
        by_mode = Lanes(first.load(WRITER_SWIZZLE)).eq(descriptor.mode.trunc("i32"))
        wrong = fn.var(I64, fn.select((copied & by_mode & moved.ne(0)).value, 1, 0))
        with fn.when((~copied & away.ne(0) & (start & (LINE - 1)).eq(0)).value):
            wrong.set(_placed_from_start(fn, shadow, bits))
        with fn.when(wrong.read().differs(0)):
            writer = Lanes(first.load(WRITER)).zext("i64")
            extra = (writer << 32).value + operand + SHARED
            other = fn.convert(first.load(WRITER_INSTRUCTION), I64)
            note_more(fn, module, warp, (insn, Kind.SWIZZLE, 0, address.value, extra, other), word)
    fn.finish()


def _placed_from_start(fn: Function, shadow: _Shadow, bits: Lanes) -> Value:
    """Return 1 if threads wrote the first two chunks of all rows, and all that they wrote, in the order of a pattern
    that begins at the start, else 0.
    """
    width = (bits.like(1) << bits).value
    right = fn.var(I64, 1)
    with fn.range(width) as line, fn.range(fn.constant(8, I64) // width) as row, fn.range(width - 1) as chunk:
        begin = Lanes(line * LINE + row * width * CHUNK)
        one, two = ((begin + ((Lanes(each) ^ Lanes(line)) << 4)).value for each in (chunk, chunk + 1))
        both = shadow.stored(one) & shadow.stored(two)
        counts = both | Lanes(chunk).eq(0)
        with fn.when((counts & ~(both & shadow.ordered(one, two))).value):
            right.set(0)
    return right.read()
