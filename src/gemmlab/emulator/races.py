"""Races in shared memory: the last writer and readers of each element, and the barriers between the accesses.

Vector clocks record the order between warps: a warp's clock advances at each barrier that it arrives at, and the warps
that the barrier releases take over the clocks of all that arrived. Two accesses of different warps, one of them a
write, conflict unless the later one's warp knows the other warp's clock at the earlier access, or a later one.
Executing together does not order the lanes of a warp: they need a warp-level synchronisation.
"""

from __future__ import annotations

from collections.abc import Iterator

from gemmlab.emulator.address_space import PENDING, bit_of
from gemmlab.emulator.instruction_layout import Insn, Kind
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES, ROW, Block, Warp
from gemmlab.emulator.raw import Raw, lane_numbers
from gemmlab.emulator.wgmma_layout import WARPGROUP
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64
from gemmlab.ir.values import Value, Var

WRITER_CLOCK, WRITER, WRITER_SYNC, WRITER_INSTRUCTION, WRITER_TIME, WRITER_FENCES = 0, 4, 8, 12, 16, 20
"""Offsets of i32 in an element's shadow that describe its last write: the warp's clock, warp * 32 + lane, the warp's
number of synchronisations, the index of the instruction and its number of executions by then, and the number of proxy
fences that the lane had executed, or `BY_PROXY` if the asynchronous proxy wrote.
"""
BY_PROXY = -1
WRITER_SWIZZLE = 24
"""Offset of an i32 in an element's shadow: the swizzle of the last write by the asynchronous proxy, by its number in a
descriptor.
"""
READ_CLOCK = 64
"""Offset of a row of 32 i32: the clock of each warp's last read; see also `wgmma_layout.MULTIPLYING_WARPS`."""
READ_SYNC = READ_CLOCK + ROW
READ_BY = READ_SYNC + ROW
"""Offset of a row of 32 i32: for each warp, instruction * 2048 + lane of its last read. If several of its lanes read
since its last synchronisation, 32 + 64 * the number of another one is added.
"""
ELEMENT = READ_BY + ROW
"""Bytes of shadow for one element of shared memory."""
SEVERAL = 32
STORE = 256
"""Flag of a store in the key of an access; the key's low 8 bits are the bytes for each lane."""
UNKNOWN = 512
"""Flag in the key of a store whose values are not known yet, such as an asynchronous copy's."""


def emit_race(fn: Function, module: Module) -> None:
    """Emit the body of `race(warp, insn, execute, addresses, words, key)`, called before each access to shared memory
    if races are checked.

    It checks and records only accesses to the memory of the warp's own block.
    """
    warp_ptr, insn_ptr, execute, addresses, words, key = fn.args
    warp, insn = Raw(fn, warp_ptr), Raw(fn, insn_ptr)
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    store = (Lanes(key) & 256).ne(0)
    width = (Lanes(key) & 255).zext("i64")
    low, high = block.load(Block.SHARED_LOW, I64), block.load(Block.SHARED_HIGH, I64)
    shadow = fn.cast(block.load(Block.RACES, I64), I8)
    index = warp.load(Warp.INDEX, I64)
    knows = fn.cast(block.load(Block.CLOCKS, I64), I32) + index * LANES
    me = _Access(fn, module, warp, insn, addresses, words, index, knows, block)
    shift = me.shift
    elements = (width + ((Lanes(fn.constant(1, I64)) << shift) - 1)) >> shift

    def elements_of_lanes() -> Iterator[tuple[Raw, Value, Value, Value]]:
        """Yield, for the body of two loops: the element's shadow, the lane, the address, the number in the access."""
        with fn.range(LANES) as lane:
            on = Lanes(bit_of(fn, execute, lane))
            address = addresses[lane]
            inside = Lanes(address).ge(Lanes(low)) & (Lanes(address) + width).le(Lanes(high))
            with fn.when((on & inside).value), fn.range(elements.value) as part:
                where = (Lanes(address - low) >> shift).value + part
                yield Raw(fn, shadow + where * ELEMENT), lane, low + (Lanes(where) << shift).value, part

    # Loops of their own: there are many more reads, and their loop is short.
    with fn.choose(store.value) as choice:
        with choice.yes():
            for element, lane, at, part in elements_of_lanes():
                me.write(element, lane, at, key, Lanes(part))
        with choice.no():
            for element, lane, at, _ in elements_of_lanes():
                me.read(element, lane, at, key)
    fn.finish()


def reader_of(block: Raw, column: Lanes, by: Lanes) -> Lanes:
    """Return the thread that read, from the read's column in the rows of reads and its `READ_BY`.

    For a column of a warpgroup's multiplications it is the first thread of the warpgroup.
    """
    thread = column * LANES + (by & 31).zext("i64")
    first = (column * -1 + (LANES - 1)) * WARPGROUP * LANES
    return column.ge(Lanes(block.load(Block.WARP_COUNT, I64))).select(first, thread)


class _Access:
    """Code that checks one warp's access to one element for races, and then records it."""

    def __init__(
        self, fn: Function, module: Module, warp: Raw, insn: Raw, addresses: Value, words: Value, index: Value,
        knows: Value, block: Raw,
    ) -> None:  # fmt: skip
        self.fn, self.module, self.warp, self.insn, self.block = fn, module, warp, insn, block
        self.addresses, self.words, self.index, self.knows = addresses, words, index, knows
        self.shift = Lanes(block.load(Block.RACE_SHIFT, I64))
        self.clock = Lanes(fn.load(knows + index))
        self.sync = Lanes(warp.load(Warp.SYNCS, I64)).trunc("i32")
        self.number = Lanes(insn.load(Insn.INDEX, I64)).trunc("i32")
        self.time = Lanes(insn.load(Insn.EXECUTED, I64)).trunc("i32")

    def read(self, element: Raw, lane: Value, at: Value, key: Value) -> None:
        self._against_writer(element, lane, at, key)
        fn, own = self.fn, self.index * 4
        short = Lanes(fn.convert(lane, I32))
        by = Lanes(element.load(own + READ_BY))
        again = Lanes(element.load(own + READ_SYNC)).eq(self.sync) & Lanes(element.load(own + READ_CLOCK)).eq(
            self.clock
        )
        other = again & (by & 31).ne(short)
        # Two readers are recorded: if one of them writes, the race is with the other.
        joined = ((by & 31) << 6) | short | SEVERAL
        mark = (self.number << 11) | other.select(joined, again.select(by & 2047, short))
        element.store(own + READ_CLOCK, self.clock.value)
        element.store(own + READ_SYNC, self.sync.value)
        element.store(own + READ_BY, mark.value)

    def write(self, element: Raw, lane: Value, at: Value, key: Value, part: Lanes) -> None:
        fn, own = self.fn, self.index * 4
        short = Lanes(fn.convert(lane, I32))
        self._against_writer(element, lane, at, key, part)
        clocks = Lanes(element.load(READ_CLOCK, I32, LANES))
        known = Lanes(fn.load(self.knows, LANES))
        others = lane_numbers(fn).ne(Lanes(fn.convert(self.index, I32)).splat(LANES))
        unordered = (clocks.gt(known) & others).mask_bits()
        with fn.when(unordered.ne(0).value):
            who = fn.zero_extend(unordered.call_flag("cttz", flag=True).value)
            by = Lanes(element.load(who * 4 + READ_BY))
            self._note(Kind.RACE_BLOCK, lane, at, key, by >> 11, reader_of(self.block, Lanes(who), by))
        by = Lanes(element.load(own + READ_BY))
        fresh = Lanes(element.load(own + READ_SYNC)).eq(self.sync) & Lanes(element.load(own + READ_CLOCK)).eq(
            self.clock
        )
        with fn.when((fresh & (by & 63).ne(short)).value):
            reader = (by & 31).eq(short).select((by >> 6) & 31, by & 31)
            self._note(Kind.RACE_WARP, lane, at, key, by >> 11, Lanes(self.index) * LANES + reader.zext("i64"))
        element.store(WRITER_CLOCK, self.clock.value)
        element.store(WRITER, ((Lanes(fn.convert(self.index, I32)) << 5) | short).value)
        element.store(WRITER_SYNC, self.sync.value)
        element.store(WRITER_INSTRUCTION, self.number.value)
        element.store(WRITER_TIME, self.time.value)
        fences = self.warp.at(Warp.PROXY_FENCES, I32)
        element.store(WRITER_FENCES, fn.load(fences + lane))

    def _against_writer(self, element: Raw, lane: Value, at: Value, key: Value, part: Lanes | None = None) -> None:
        """Emit the comparison of an access with the element's last write.

        `part` is the element's number in the access; it is given for a store only.
        """
        fn = self.fn
        writer = Lanes(element.load(WRITER))
        warp_of = writer >> 5
        mine = warp_of.eq(Lanes(fn.convert(self.index, I32)))
        with fn.choose(mine.value) as choice:
            with choice.yes():
                self._against_own(element, writer, lane, at, key, part)
            with choice.no():
                known = Lanes(fn.load(self.knows + fn.zero_extend(warp_of.value)))
                with fn.when(Lanes(element.load(WRITER_CLOCK)).gt(known).value):
                    changed = fn.var(I32, 1)
                    if part is not None:
                        self._compare(element, lane, at, key, part, changed)
                    with fn.when(changed.read().differs(0)):
                        number = Lanes(element.load(WRITER_INSTRUCTION))
                        self._note(Kind.RACE_BLOCK, lane, at, key, number, writer.zext("i64"))

    def _against_own(self, element: Raw, writer: Lanes, lane: Value, at: Value, key: Value, part: Lanes | None) -> None:
        """Emit the comparison of an access with the element's last write, if that was the warp's own."""
        fn = self.fn
        lane_of, number, who = writer & 31, Lanes(element.load(WRITER_INSTRUCTION)), writer.zext("i64")
        together = number.eq(self.number) & Lanes(element.load(WRITER_TIME)).eq(self.time)
        fresh = Lanes(element.load(WRITER_CLOCK)).eq(self.clock) & Lanes(element.load(WRITER_SYNC)).eq(self.sync)
        another = lane_of.ne(Lanes(fn.convert(lane, I32)))
        with fn.when((fresh & ~together & another).value):
            self._note(Kind.RACE_WARP, lane, at, key, number, who)
        if part is None:
            return
        # Several lanes of one store write the same place: the result is undefined, unless they write the same value.
        with fn.when((together & another & self._known(key)).value):
            other = fn.zero_extend(lane_of.value)
            stores = (part << self.shift).value, lane, at - self.addresses[other], other
            differ = fn.call(self.module["stores_differ"], self.words, *stores, self._bytes(key))
            with fn.when(differ.differs(0)):
                self._note(Kind.RACE_WARP, lane, at, key, number, who)

    def _compare(self, element: Raw, lane: Value, at: Value, key: Value, part: Lanes, changed: Var) -> None:
        """Emit code that sets `changed` to 0 if a store leaves the value as it is, and a thread, not a copy, wrote it.

        Such a store is no race, so several threads may set one flag.
        """
        fn = self.fn
        under_way = Lanes(Raw(fn, fn.cast(self.block.load(Block.VALID, I64), I8)).load(at, I8)).eq(PENDING)
        by_thread = Lanes(element.load(WRITER_FENCES)).ne(BY_PROXY) & ~under_way
        with fn.when((self._known(key) & by_thread).value):
            host, start = self.block.load(Block.SHARED, I64) + at, (part << self.shift).value
            changes = self.module["store_changes"]
            changed.set(fn.call(changes, host, self.words, start, self._bytes(key), lane))

    @staticmethod
    def _known(key: Value) -> Lanes:
        return (Lanes(key) & UNKNOWN).eq(0)

    def _bytes(self, key: Value) -> Value:
        """Return the number of bytes of one element that an access covers."""
        size, width = Lanes(self.fn.constant(1, I64)) << self.shift, (Lanes(key) & 255).zext("i64")
        return width.ult(size).select(width, size).value

    def _note(self, kind: int, lane: Value, at: Value, key: Value, number: Lanes, who: Lanes) -> None:
        fn = self.fn
        extra = (Lanes(fn.zero_extend(key) + 65536) & ~UNKNOWN) | (who << 32)
        other = number.zext("i64").value
        fn.call(self.module["note"], self.warp.base, self.insn.base, kind, lane, at, extra.value, other)


__all__ = ["ELEMENT", "emit_race", "reader_of"]
