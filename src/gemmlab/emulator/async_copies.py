"""Asynchronous copies (cp.async): the source is read at the issue, the destination written at the wait for the group.

It is written earlier if an mbarrier counts the copies, or if the warp's list of pending copies is full.

From issue to wait, the destination's bytes count as pending: a read of them is reported as a read without a wait, not
as a read of unwritten memory. The check for races treats the copy as a store at its issue.
"""

from __future__ import annotations

from gemmlab.emulator.address_space import PENDING, SPACES, STORE, translate
from gemmlab.emulator.instruction_layout import Insn, Kind
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import Pending
from gemmlab.emulator.layout import LANES, Block, Warp
from gemmlab.emulator.races import UNKNOWN
from gemmlab.emulator.raw import Raw
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64, pointer
from gemmlab.ir.values import Value

COPY = (
    ("warp", pointer(I8)),
    ("insn", pointer(I8)),
    ("execute", I32),
    ("to", pointer(I64)),
    ("source", pointer(I64)),
    ("reads", I32),
    ("width", I32),
)
FILL, BYPASS = 512, 1024
LAND = (("warp", pointer(I8)), ("insn", pointer(I8)), ("left", I64))


def emit_copy(fn: Function, module: Module) -> None:
    """Emit the body of `copy(...)`: read each lane's source, and put the copy on the warp's list of pending copies.

    Lanes that are not in the mask `reads` copy zeros. `width` is bytes a lane plus flags. With `BYPASS`, the copy
    bypasses L1. With `FILL`, the low bits of the source address are no part of it: they are the number of bytes at the
    end of the destination that become zeros (compiled code for cp.async with a source size).
    """
    warp_ptr, insn, execute, to, source, reads, flags = fn.args
    width = (Lanes(flags) & 255).value
    warp = Raw(fn, warp_ptr)
    Raw(fn, insn).add(Insn.REQUESTS, 1)
    firsts = fn.scratch(I64, LANES)
    mask = (Lanes(flags) & FILL).ne(0).select(-Lanes(fn.zero_extend(width)), -1)
    fn.store(firsts, (Lanes(fn.load(source, LANES)) & mask.splat(LANES)).value)
    copying = (Lanes(execute) & Lanes(reads)).value
    fn.call(module["count_global"], warp_ptr, insn, copying, firsts, width)
    fn.call(module["count_shared"], warp_ptr, insn, execute, to, (Lanes(width) + STORE).value)
    with fn.choose((Lanes(flags) & BYPASS).ne(0).value) as choice:
        with choice.yes():
            fn.call(module["count_past_l1"], insn, copying, to, firsts, width)
        with choice.no():
            fn.call(module["count_through_l1"], insn, copying, to, firsts, width)
    nowhere = fn.scratch(I32, LANES)
    fn.call(module["global_race"], warp_ptr, insn, copying, firsts, nowhere, width, 0)
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    with fn.when(block.load(Block.RACES, I64).differs(0)):
        nothing = fn.scratch(I32, LANES)
        fn.call(module["race"], warp_ptr, insn, execute, to, nothing, (Lanes(width) + STORE + UNKNOWN).value)
    pending = Raw(fn, fn.cast(warp.load(Warp.PENDING, I64), I8))
    size = fn.zero_extend(width)
    with fn.range(LANES) as lane, fn.when(_bit(fn, execute, lane)):
        with fn.when(pending.load(Pending.COUNT, I64) >= Pending.CAPACITY):
            # Without room, complete every copy in flight, those of the open group included.
            fn.call(module["land"], warp_ptr, insn, -1)
        host = fn.call(module["locate_shared"], warp_ptr, insn, lane, to[lane], (Lanes(width) + STORE).value)
        with fn.when(host.differs(0)):
            place = translate(fn, warp, "shared", to[lane], fn.constant(0, I64), size, lane)
            count = pending.load(Pending.COUNT, I64)
            entry = Raw(fn, pending.base + (count * Pending.ENTRY_SIZE + Pending.ENTRY))
            entry.store(Pending.ENTRY_HOST, place.host, I64)
            entry.store(Pending.ENTRY_VALID, place.valid, I64)
            entry.store(Pending.ENTRY_BYTES, size, I64)
            entry.store(Pending.ENTRY_GROUP, pending.load(Pending.GROUP, I64), I64)
            for part in (0, 8):
                entry.store(Pending.ENTRY_DATA + part, 0, I64)
            with fn.when(_bit(fn, reads, lane)):
                _read(fn, module, lane, source[lane], entry)
            with fn.range(size) as byte:
                fn.store(fn.cast(place.valid, I8) + byte, fn.constant(PENDING, I8))
            pending.store(Pending.COUNT, count + 1, I64)
    block.add(Block.EPOCH, 1)
    fn.finish()


def _read(fn: Function, module: Module, lane: Value, address: Value, entry: Raw) -> None:
    warp_ptr, insn, flags = fn.args[0], fn.args[1], fn.args[6]
    width = (Lanes(flags) & 255).value
    size = Lanes(fn.zero_extend(width))
    fills = (Lanes(flags) & FILL).ne(0)
    zeros = fills.select(Lanes(address) & (size - 1), 0)
    address = (Lanes(address) - zeros).value
    there = (Lanes(width) - zeros.trunc("i32")).value
    host = fn.call(module["locate_global"], warp_ptr, insn, lane, address, there)
    with fn.when(host.differs(0)):
        place = translate(fn, Raw(fn, warp_ptr), "global", address, fn.constant(0, I64), size.value, lane)
        unwritten = fn.var(I32, 0)
        with fn.range((size - zeros).value) as byte:
            fn.store(entry.at(Pending.ENTRY_DATA, I8) + byte, fn.load(fn.cast(place.host, I8) + byte))
            with fn.when(place.valid.differs(0)), fn.when(fn.load(fn.cast(place.valid, I8) + byte).differs(-1)):
                unwritten.set(1)
        with fn.when(unwritten.read().differs(0)):
            extra = fn.zero_extend(width) + SPACES["global"] * 65536
            fn.call(module["note"], warp_ptr, insn, Kind.UNWRITTEN, lane, address, extra, -1)


def emit_land(fn: Function) -> None:
    """Emit the body of `land(warp, insn, left)`: complete the copies of all closed groups but the last `left`.

    -1 completes those of all groups, the open one included.
    """
    warp, left = Raw(fn, fn.args[0]), fn.args[2]
    pending = Raw(fn, fn.cast(warp.load(Warp.PENDING, I64), I8))
    limit = Lanes(pending.load(Pending.GROUP, I64)) - Lanes(left)
    count = pending.load(Pending.COUNT, I64)
    remaining = fn.var(I64, 0)
    with fn.range(count) as index:
        entry = Raw(fn, pending.base + (index * Pending.ENTRY_SIZE + Pending.ENTRY))
        with fn.choose(Lanes(entry.load(Pending.ENTRY_GROUP, I64)).lt(limit).value) as choice:
            with choice.yes():
                host = fn.cast(entry.load(Pending.ENTRY_HOST, I64), I8)
                valid = fn.cast(entry.load(Pending.ENTRY_VALID, I64), I8)
                with fn.range(entry.load(Pending.ENTRY_BYTES, I64)) as byte:
                    fn.store(host + byte, fn.load(entry.at(Pending.ENTRY_DATA, I8) + byte))
                    fn.store(valid + byte, fn.constant(-1, I8))
            with choice.no():
                place = Raw(fn, pending.base + (remaining.read() * Pending.ENTRY_SIZE + Pending.ENTRY))
                for offset in range(0, Pending.ENTRY_SIZE, 8):
                    place.store(offset, entry.load(offset, I64), I64)
                remaining += 1
    pending.store(Pending.COUNT, remaining.read(), I64)
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    block.add(Block.EPOCH, 1)
    fn.finish()


def _bit(fn: Function, bits: Value, lane: Value) -> Value:
    return ((Lanes(bits) >> Lanes(fn.convert(lane, I32))) & 1).ne(0).value
