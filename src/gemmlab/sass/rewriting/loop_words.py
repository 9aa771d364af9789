"""Instruction words of sm_90 for rewritten loops, as integers of 128 bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gemmlab.sass.instruction import Instruction
from gemmlab.sass.register_accesses import accesses_of
from gemmlab.sass.writing.word import decode, encode

_CONTROL = 105
MASK = (1 << _CONTROL) - 1
"""Mask of all bits of an instruction word below its control codes."""
NO_BARRIER = 7
RZ = 255


class Word(NamedTuple):
    """An instruction word of a rewritten loop."""

    bits: int
    line_of: Instruction | None = None
    """The compiler's instruction whose source line the word has; `None` for the line of the word before."""


def control(
    stall: int = 1,
    *,
    stay: bool = True,
    written: int = NO_BARRIER,
    read: int = NO_BARRIER,
    wait: int = 0,
    reuse: int = 0,
) -> int:
    """Return control codes at their place in a word.

    `stall` is in cycles, and `stay` is the yield bit. Dependency barrier `written` is released when the result is
    written, `read` when the operands are read. `wait` and `reuse` are bit masks, as in `Control`.
    """
    return (stall | stay << 4 | written << 5 | read << 8 | wait << 11 | reuse << 17) << _CONTROL


def nop(stall: int = 1, wait: int = 0) -> int:
    return 0x7918 | control(stall, wait=wait)


def ffma(result: int, a: int, b: int, c: int, *, reuse: int = 0, wait: int = 0) -> int:
    return 0x7223 | result << 16 | a << 24 | b << 32 | c << 64 | control(wait=wait, reuse=reuse)


def mov(result: int, source: int, stall: int = 2) -> int:
    return 0x7202 | result << 16 | source << 32 | 0xF << 72 | control(stall)


def load(template: Instruction, result: int, base: int, offset: int, written: int) -> int:
    """Return the word of an LDS.128 like `template`, with the given result, address register, byte offset and barrier.

    Dependency barrier `written` is released when the result is written.
    """
    fields = 0xFF << 16 | 0xFF << 24 | 0xFFFFFF << 40
    return template.encoding & MASK & ~fields | result << 16 | base << 24 | offset << 40 | control(written=written)


def branch(encoding: int, distance: int) -> int:
    """Return the word of a BRA with another distance, in bytes, from its end to its target.

    The word has a quarter of the distance in bits 16 to 23 and from 34 on.
    """
    number = (distance // 4) & ((1 << 56) - 1)
    fields = 0xFF << 16 | ((1 << 48) - 1) << 34
    return encoding & ~fields | (number & 0xFF) << 16 | (number >> 8) << 34


def with_registers(instruction: Instruction, sources: Mapping[int, int], results: Mapping[int, int]) -> int:
    """Return an instruction's word without control codes, with registers renumbered by `sources` and `results`."""
    word = decode(instruction)
    written = {access.operand for access in accesses_of(instruction).writes}
    for slot in word.slots:
        number, names = word.number(slot.operand, slot.part), results if slot.operand in written else sources
        if slot.kind == "reg" and number in names:
            word = word.with_register(slot.operand, names[number], slot.part)
    return encode(word) & MASK


def added(result: int, source: int, number: int) -> int:
    """Return the word, without control codes, of an IADD3 that adds `number` to register `source`, into `result`."""
    no_predicates = 0xF << 87 | 7 << 84 | 7 << 81 | 0xF << 77
    return 0x7810 | result << 16 | source << 24 | (number & 0xFFFFFFFF) << 32 | RZ << 64 | no_predicates
