"""Hazards of warpgroup instructions in words."""

from __future__ import annotations

from gemmlab.core.words import counted
from gemmlab.emulator.instruction_layout import Kind
from gemmlab.emulator.isa.register_pool import GROWS, NEVER, SHRINKS
from gemmlab.emulator.wgmma_flight import HAS_ENDED, TOO_FEW, UNFINISHED
from gemmlab.emulator.wgmma_layout import OPERANDS

NAMES = {Kind.WARPGROUP: "warpgroup", Kind.REGISTERS: "setmaxnreg", Kind.OVERWRITTEN: "wgmma", Kind.PROXY: "proxy",
         Kind.SWIZZLE: "misaligned"}  # fmt: skip
"""Kinds of events of warpgroups, with the names of their hazards."""
NO_ADDRESS = frozenset({Kind.WARPGROUP, Kind.REGISTERS})
"""Kinds of events whose `address` field is a number or a mask of lanes, not an address."""
_REGISTERS = {
    GROWS: "setmaxnreg.dec to {} registers: the warp has fewer",
    SHRINKS: "setmaxnreg.inc to {} registers: the warp has more",
    NEVER: "setmaxnreg.inc to {} registers: the block's pool never has so many, whatever its other warps release",
}


def message(kind: int, address: int, extra: int, fellow: object, there: str, word: int) -> str:
    """Return the message of an event (a kind in `NAMES`); `fellow` and `there` are thread and instruction of the other
    access, `word` is the descriptor of a `SWIZZLE` event.
    """
    if kind == Kind.WARPGROUP and extra == HAS_ENDED:
        return f"the warp of thread {address} has ended without the multiplication, which needs all four warps"
    if kind == Kind.WARPGROUP and extra == TOO_FEW:
        return f"the block has {counted(address, 'warp')} of this warpgroup; a multiplication needs all four"
    if kind == Kind.WARPGROUP and extra == UNFINISHED:
        return f"the warp ends while {counted(address, 'multiplication')} may be in flight: no wgmma.wait_group before"
    if kind == Kind.WARPGROUP:
        return f"{address.bit_count()} lanes of the warp do not execute it; a warpgroup instruction needs all of them"
    if kind == Kind.REGISTERS:
        return _REGISTERS[extra].format(address)
    by = operand(extra)
    if kind == Kind.SWIZZLE:
        return _another_pattern(f"a multiplication reads shared memory{by} ({descriptor(word)})", word, fellow, there)
    if kind == Kind.PROXY:
        return (
            f"the asynchronous proxy reads shared memory{by}, which thread {fellow} of the block wrote ({there}),"
            " without a proxy fence (fence.proxy.async) by that thread between its write and what orders the two"
        )
    return (
        f"a multiplication reads shared memory{by}, which thread {fellow} writes ({there}) while it may be read: the"
        " write is ordered neither before its issue nor after the wait for it (wgmma.wait_group, then a barrier)"
    )


def _another_pattern(what: str, word: int, fellow: object, there: str) -> str:
    row = 256 >> (word >> 62 & 3)
    atom, start = 8 * row, (word & 0x3FFF) << 4 & -row
    needed = (start & atom - 1) >> 7
    if there.startswith("UTMALDG"):
        wrote, place, needed = f"the copies of thread {fellow}", f"at multiples of {atom:,} bytes", 0
    else:
        wrote, place = f"the stores of thread {fellow} and others", f"at {start:#x}"
    cure = f"base offset {needed} is needed" + (f", or a start at a multiple of {atom:,} bytes" if needed else "")
    return f"{what}, but {wrote} ({there}) begin the swizzle's pattern {place}: {cure}"


def operand(extra: int) -> str:
    """Return words, to follow `"memory"`, for the operand whose bit is set in an event's `extra`; empty if none is."""
    return next((f" by the descriptor of {name}" for bits, name in OPERANDS.items() if extra & bits), "")


def descriptor(word: int) -> str:
    """Return the fields of a descriptor in words: `"start 0x400, leading 16 B, stride 1,024 B, swizzle 128"`."""
    start, leading, stride = ((word >> at & 0x3FFF) << 4 for at in (0, 16, 32))
    base, mode = word >> 49 & 7, word >> 62 & 3
    swizzle = f"swizzle {256 >> mode}" if mode else "no swizzle"
    offset = f", base offset {base}" if base else ""
    return f"start {start:#x}, leading {leading:,} B, stride {stride:,} B, {swizzle}{offset}"


def in_flight_message(name: str, multiplication: str, *, fence: bool) -> str:
    """Return the message for an early access to registers of a multiplication.

    `fence`: the instruction writes before the multiplication, without a fence between; else the multiplication is in
    flight.
    """
    if fence:
        return f"{name} writes a register of {multiplication}, and no wgmma.fence is between"
    return f"{name} touches registers of {multiplication} that is in flight: no wgmma.wait_group before it"
