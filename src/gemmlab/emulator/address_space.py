"""Translation of emulated addresses to host addresses, with checks of bounds, alignment and validity.

Loads and stores are in `memory_access`, their counters in `memory_counts`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.emulator.instruction_layout import Kind, Space
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import RANK_BITS, Launch
from gemmlab.emulator.layout import Block, Warp
from gemmlab.emulator.raw import Raw
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64, pointer
from gemmlab.ir.values import Value

SPACES = {"global": Space.GLOBAL, "shared": Space.SHARED, "local": Space.LOCAL}
STORE = 256
EACH_LANE = 1024
"""Flag in the `key` (see `ACCESS`) of an atomic operation in shared memory: lanes with the same word take a wavefront
each."""
PENDING = 0x7F
"""Validity of a byte that an asynchronous copy has not written yet."""

ACCESS = (
    ("warp", pointer(I8)),
    ("insn", pointer(I8)),
    ("execute", I32),
    ("addresses", pointer(I64)),
    ("words", pointer(I32)),
    ("key", I32),
)
"""Arguments of the compiled functions that access memory. `execute`: mask of the lanes that access it; `addresses`: one
i64 for each of 32 lanes; `words`: a row of 32 i32 for each 32-bit word that a lane loads or stores; `key`: bytes that a
lane accesses, plus `STORE` for a store."""
COUNT = (*ACCESS[:4], ACCESS[5])
LOCATE = (("warp", pointer(I8)), ("insn", pointer(I8)), ("lane", I64), ("address", I64), ("key", I32))
TOUCH = ACCESS[:4]


@dataclass(frozen=True, slots=True)
class Place:
    """An emulated address on the host: its host address, the address of its validity bytes (0: all are valid), and
    whether it is in bounds.
    """

    host: Value
    valid: Value
    inside: Value


def translate(fn: Function, warp: Raw, space: str, address: Value, low: Value, high: Value, lane: Value) -> Place:
    """Emit the translation of `address` in the memory `space`, as one `lane` of the warp accesses it; return its place.

    `inside` is true if all bytes from `address + low` up to, but not including, `address + high` are in bounds: in one
    global allocation, in the shared memory of one block that has not ended, or in the lane's own local memory.
    """
    if space == "global":
        launch = Raw(fn, fn.cast(warp.load(Warp.LAUNCH, I64), I8))
        number = Lanes(address) >> Launch.SLOT_BITS
        known = number.ult(Launch.SLOT_COUNT)
        slot = Raw(fn, fn.cast(launch.load(Launch.SLOTS, I64), I8) + known.select(number, 0).value * Launch.SLOT_SIZE)
        offset = address - number.value * (1 << Launch.SLOT_BITS)
        size, host, valid = (slot.load(8 * field, I64) for field in range(3))
        inside = Lanes(offset + low).ge(0) & Lanes(offset + high).le(Lanes(size)) & known
        return Place(
            host + offset, Lanes(valid).eq(0).select(Lanes(valid), valid_at(valid, offset)).value, inside.value
        )
    if space == "shared":
        block, there = cluster_block(fn, warp, address)
        first, last = block.load(Block.SHARED_LOW, I64), block.load(Block.SHARED_HIGH, I64)
        host, valid = block.load(Block.SHARED, I64), block.load(Block.VALID, I64)
        inside = Lanes(address + low).ge(Lanes(first)) & Lanes(address + high).le(Lanes(last)) & there
        return Place(host + address, valid + address, inside.value)
    size = warp.load(Warp.LOCAL_BYTES, I64)
    inside = Lanes(address + low).ge(0) & Lanes(address + high).le(Lanes(size))
    offset = address + lane * size
    return Place(warp.load(Warp.LOCAL, I64) + offset, warp.load(Warp.LOCAL_VALID, I64) + offset, inside.value)


def cluster_block(fn: Function, warp: Raw, address: Value) -> tuple[Raw, Lanes]:
    """Emit the search for the block that owns a shared address; return it, and true if it exists and has not ended.

    If it does not exist, the returned block is the warp's own.
    """
    own = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    rank = Lanes(address) >> RANK_BITS
    known = rank.ult(Lanes(own.load(Block.CLUSTER, I64)))
    ahead = known.select(rank - Lanes(own.load(Block.RANK, I64)), 0)
    block = Raw(fn, own.base + ahead.value * Block.SIZE)
    return block, known & Lanes(block.load(Block.LIVE, I64)).ne(0)


def valid_at(base: Value, offset: Value) -> Lanes:
    """Return the address (i64) of the validity byte at an offset in an allocation; its first one is at `base`."""
    return Lanes(base + offset)


def emit_locate(fn: Function, module: Module, space: str) -> None:
    """Emit the body of `locate_SPACE(warp, insn, lane, address, key)`, which returns the host address of an access.

    `key` is as in `ACCESS`. If the access is out of bounds, misaligned or in a block that has ended, the compiled
    function records an event and returns 0.
    """
    warp_ptr, insn, lane, address, key = fn.args
    warp = Raw(fn, warp_ptr)
    width = fn.zero_extend((Lanes(key) & 255).value)
    place = translate(fn, warp, space, address, fn.constant(0, I64), width, lane)
    host = fn.var(I64, place.host)
    extra = fn.zero_extend(key) + SPACES[space] * 65536

    def complain(kind: Value | int) -> None:
        host.set(0)
        fn.call(module["note"], warp_ptr, insn, kind, lane, address, extra, -1)

    with fn.choose(place.inside) as choice:
        with choice.yes(), fn.when((Lanes(address) & Lanes(width - 1)).ne(0).value):
            complain(Kind.MISALIGNED)
        with choice.no():
            complain(Kind.OUT_OF_BOUNDS if space != "shared" else _why_not(fn, warp, address))
    fn.finish(host.read())


def _why_not(fn: Function, warp: Raw, address: Value) -> Value:
    """Return the kind of event for a bad shared address: out of bounds, or in a block that has ended."""
    block, _there = cluster_block(fn, warp, address)
    return (
        Lanes(block.load(Block.LIVE, I64)).eq(0).select(Lanes(fn.constant(Kind.ENDED, I64)), Kind.OUT_OF_BOUNDS).value
    )


def bit_of(fn: Function, bits: Value, lane: Value) -> Value:
    """Return an i1 that is true if the lane's bit is set in the mask `bits`."""
    return ((Lanes(bits) >> Lanes(fn.convert(lane, I32))) & 1).ne(0).value
