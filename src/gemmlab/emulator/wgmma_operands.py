"""Operands of warpgroup multiplications: 16-byte chunks of shared memory, located by a descriptor, and their values.

An operand consists of *core matrices*, 8 rows of 16 bytes. A row is along k if the operand is K-major, along m or n if
it is transposed (MN-major). A swizzled operand has rows of 32, 64 or 128 bytes whose chunks are permuted: the bits of
an address from 4 on are replaced by their exclusive or with those from 7 on. (PTX ISA, "Asynchronous warpgroup level
matrix shared memory layout"; canonical layouts as in CUTLASS, cute/arch/mma_sm90_desc.hpp.)
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.emulator.address_space import PENDING
from gemmlab.emulator.events import note_more
from gemmlab.emulator.instruction_layout import Kind
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import RANK_BITS
from gemmlab.emulator.layout import Block, Warp
from gemmlab.emulator.raw import Raw
from gemmlab.emulator.wgmma_descriptor import Descriptor
from gemmlab.emulator.wgmma_layout import FORMATS, Format
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I16, I32, I64, Type, pointer
from gemmlab.ir.values import Value

CHUNK = 16
FETCH = (
    ("warp", pointer(I8)), ("insn", pointer(I8)), ("flight", pointer(I8)), ("descriptor", I64), ("transposed", I64),
    ("first_row", I64), ("rows", I64), ("first_chunk", I64), ("chunks", I64), ("to", pointer(I8)), ("issue", I64),
    ("operand", I64),
)  # fmt: skip
"""Arguments of the copy of an operand's rows, of `chunks` times 16 bytes each, to contiguous memory at `to`.

Rows are counted along m or n and chunks along k; for a transposed operand the other way round. With `issue` = 1 nothing
is copied: proxy fences of the threads that wrote the operand, and stores of other blocks, are checked. `operand` is one
of `OPERANDS`.
"""
DECODE = (
    ("bits", pointer(I8)),
    ("format", I64),
    ("count", I64),
    ("factors", pointer(I32)),
    ("exponents", pointer(I32)),
)
ZERO_EXPONENT = -4096
"""Exponent of a zero: lower than the exponent of any product of numbers that are not zero."""
WIDE = 8
"""Numbers that are decoded as one vector; the length of every row is a multiple."""


def emit_fetch(fn: Function, module: Module) -> None:
    """Emit the body of `fetch(...)` (arguments: `FETCH`).

    When it copies, it records events for chunks that are out of bounds (these become zeros) or have unwritten or
    pending bytes, and calls `operand_race` if races are checked.
    """
    warp_ptr, insn, entry, word, transposed, first_row, rows, first_chunk, chunks, to, issue, operand = fn.args
    warp, descriptor = Raw(fn, warp_ptr), Descriptor(word)
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    rank = Lanes(block.load(Block.RANK, I64)) << RANK_BITS
    start, base, bits = descriptor.start, descriptor.base, descriptor.bits
    width = bits.like(1) << bits
    swap = bits.eq(0) & Lanes(transposed).ne(0)
    by_eight = swap.select(descriptor.leading, descriptor.stride)
    by_width = swap.select(descriptor.stride, descriptor.leading)
    low, high = Lanes(block.load(Block.SHARED_LOW, I64)), Lanes(block.load(Block.SHARED_HIGH, I64))
    shared, valid = block.load(Block.SHARED, I64), block.load(Block.VALID, I64)
    racing = block.load(Block.RACES, I64).differs(0)
    lands = issue.equals(0)
    with fn.range(rows) as row, fn.range(chunks) as chunk:
        x, y = Lanes(first_row + row), Lanes(first_chunk + chunk)
        inner = (x & 7) * width + (y & (width - 1))
        plain = start + (x >> 3) * by_eight + (y >> bits) * by_width + (inner << 4)
        phase = ((plain >> 7) - base) & (width - 1)
        address = (plain ^ (phase << 4)) + rank
        target = to + (row * chunks + chunk) * CHUNK
        inside = address.ge(low) & (address + CHUNK).le(high)
        with fn.choose(inside.value) as choice:
            with choice.yes():
                source, state = shared + address.value, fn.cast(valid + address.value, I64)
                whole = (Lanes(fn.load(state)) & Lanes(fn.load(state + 1))).eq(-1)
                with fn.choose(lands) as moment:
                    with moment.yes():
                        fn.store(target, fn.load(fn.cast(source, I8), CHUNK))
                        with fn.when((~whole).value):
                            _unready(fn, module, warp, insn, state, address, operand, word)
                        with fn.when(racing):
                            fn.call(module["operand_race"], warp_ptr, insn, entry, address.value, operand)
                    with moment.no(), fn.when(whole.value):
                        fn.call(module["operand_proxy"], warp_ptr, insn, entry, address.value, operand)
                        fn.call(module["operand_far"], warp_ptr, insn, entry, address.value, operand)
            with choice.no(), fn.when(lands):
                fn.store(target, fn.constant(0, Type(f"<{CHUNK} x i8>", I8, CHUNK)))
                extra = operand + (CHUNK + SHARED)
                note_more(fn, module, warp, (insn, Kind.OUT_OF_BOUNDS, 0, address.value, extra, -1), word)
    fn.finish()


SHARED = 65536
"""Bits of an event's `extra` for shared memory."""


def _unready(
    fn: Function, module: Module, warp: Raw, insn: Value, state: Value, address: Lanes, operand: Value, word: Value
) -> None:
    pending = fn.var(I64, 0)
    bytes_ = fn.cast(state, I8)
    with fn.range(CHUNK) as byte:
        pending.set(fn.select(fn.load(bytes_ + byte).equals(PENDING), 1, pending.read()))
    kind = fn.select(pending.read().differs(0), Kind.ASYNC, Kind.UNWRITTEN)
    note_more(fn, module, warp, (insn, kind, 0, address.value, operand + (CHUNK + SHARED), -1), word)


@dataclass(frozen=True, slots=True)
class _Floats:
    """Decoding of a floating-point format: a number is a factor, from 1 to below 2 if normal, times a power of two."""

    format: Format

    @property
    def bias(self) -> int:
        return (1 << (self.format.exponent - 1)) - 1

    def split(self, bits: Lanes) -> tuple[Lanes, Lanes]:
        """Return (factor as f32, exponent). For infinity and NaN the factor is the number itself."""
        exponent, mantissa = self.format.exponent, self.format.mantissa
        sign = ((bits >> (exponent + mantissa)) & 1) << 31
        field, rest = (bits >> mantissa) & ((1 << exponent) - 1), bits & ((1 << mantissa) - 1)
        tiny = field.eq(0)
        normal = (rest << (23 - mantissa)) | (127 << 23)
        denormal = (rest.to_float("f32", signed=True) * 2.0**-mantissa).bits("i32")
        infinite = field.like((1 << exponent) - 1)
        special = rest.eq(0).select(field.like(0x7F800000), 0x7FC00000)
        if self.format is FORMATS["E4M3"]:
            # Only the last pattern is not a number.
            is_special, special = field.eq(infinite) & rest.eq(7), field.like(0x7FC00000)
        else:
            is_special = field.eq(infinite)
        factor = is_special.select(special, tiny.select(denormal, normal)) | sign
        zero = tiny & rest.eq(0)
        power = tiny.select(field.like(1 - self.bias), field - self.bias)
        return factor.bits("f32"), zero.select(field.like(ZERO_EXPONENT), power)


def emit_decode(fn: Function) -> None:
    """Emit the body of `decode(bits, format, count, factors, exponents)`: split numbers into factors and exponents.

    Integers become i32 factors. `count` is a multiple of `WIDE`.
    """
    bits, number, count, factors, exponents = fn.args
    for format_ in FORMATS.values():
        element = {8: I8, 16: I16, 32: I32}[format_.bits]
        with fn.when(number.equals(format_.code)), fn.range(0, count, WIDE) as first:
            word = Lanes(fn.load(fn.cast(bits, element) + first, WIDE))
            if not format_.exponent:
                whole = word.sext("i32") if format_.signed else word.zext("i32")
                fn.store(factors + first, whole.value)
                continue
            pattern = word >> 13 if format_ is FORMATS["TF32"] else word.zext("i32")
            factor, power = _Floats(format_).split(pattern)
            fn.store(factors + first, factor.bits("i32").value)
            fn.store(exponents + first, power.value)
    fn.finish()
