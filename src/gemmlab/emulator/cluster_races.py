"""Races between blocks of a cluster in their shared memory.

The owner is the block to which the memory belongs. Besides the shadow of its own warps (`emulator.races`), each block
has one for the other blocks: for each element, every block's last write and last plain read. Accesses are ordered by
vector clocks over all warps of the cluster, which cluster barriers, mbarriers and block barriers pass on. A volatile or
atomic access to a block's shared memory takes over the clocks published there before; if it is no load, it also
publishes its warp's vector clock. There is one published clock a block, not one a variable.
"""

from __future__ import annotations

from gemmlab.emulator.address_space import STORE, bit_of
from gemmlab.emulator.events import note_more
from gemmlab.emulator.global_races import GLOBAL_RACE
from gemmlab.emulator.instruction_layout import Insn, Kind, Space
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import RANK_BITS, Launch
from gemmlab.emulator.layout import BARRIERS, LANES, ROW, Block, Warp
from gemmlab.emulator.races import (
    BY_PROXY,
    ELEMENT,
    READ_BY,
    READ_CLOCK,
    WRITER,
    WRITER_CLOCK,
    WRITER_FENCES,
    WRITER_INSTRUCTION,
    reader_of,
)
from gemmlab.emulator.raw import Raw
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64
from gemmlab.ir.values import Value

CLUSTER_RACE = GLOBAL_RACE
"""Arguments of `cluster_race`: those of `address_space.ACCESS`, and `strong`: `PLAIN`, `STRONG` (volatile) or `ATOMIC`.
"""
PLAIN, STRONG, ATOMIC = range(3)
SHARED = Space.SHARED * 65536
"""Bits of an event's `extra` that name shared memory: `Space.SHARED` from bit 16 on."""
WRITE_CLOCK, WRITE_BY, WRITE_SITE, WRITE_STRONG, READ_FAR_CLOCK, READ_FAR_BY, READ_FAR_SITE = range(0, 28, 4)
"""Offsets of i32 in the entry of `Block.FAR` for one element and one accessing block: its last write and last plain
read, each with the warp's clock, warp * 32 + lane and the index of the instruction; for the write also `strong`.
"""
FAR = 32
"""Bytes of an entry of `Block.FAR`; each element of shared memory has one entry for each block of the cluster."""
VISIT = 16
"""Bytes of a record of `Block.VISITS`, a warp's last access to another block's shared memory: clock, index of the
instruction, lane, unused; i32 each."""
PUBLISHED = LANES + BARRIERS
"""The row of `Block.FOREIGN` with the clocks that volatile stores and atomic operations published in the block's
memory.
"""
FENCED = PUBLISHED + 1
"""The first of 32 rows of `Block.FOREIGN`: each warp's vector clock at its last fence of cluster or wider scope."""
ROWS = FENCED + LANES
"""The number of rows of `Block.FOREIGN`."""


def emit_cluster_race(fn: Function, module: Module) -> None:
    """Emit the body of `cluster_race(...)`, called before each load, store and atomic operation on shared memory.

    Without a cluster of several blocks, or if races are not checked, it returns at once.
    """
    warp_ptr, insn_ptr, execute, addresses, _words, key, strong = fn.args
    own = Raw(fn, fn.cast(Raw(fn, warp_ptr).load(Warp.BLOCK, I64), I8))
    with fn.when(own.load(Block.FOREIGN, I64).equals(0)):
        fn.ret()
    me = _Access(fn, module, Raw(fn, warp_ptr), Raw(fn, insn_ptr), own, key, strong)
    shift = Lanes(own.load(Block.RACE_SHIFT, I64))
    width = (Lanes(key) & 255).zext("i64")
    elements = (width + ((Lanes(fn.constant(1, I64)) << shift) - 1)) >> shift
    with fn.range(LANES) as lane, fn.when(bit_of(fn, execute, lane)):
        address = Lanes(addresses[lane])
        rank = address >> RANK_BITS
        there = rank.ult(me.count)
        target = me.block(there.select(rank, me.rank).value)
        low, high = Lanes(target.load(Block.SHARED_LOW, I64)), Lanes(target.load(Block.SHARED_HIGH, I64))
        inside = there & address.ge(low) & (address + width).le(high) & Lanes(target.load(Block.LIVE, I64)).ne(0)
        local = rank.eq(me.rank)
        # No other block has accessed this memory yet, so there is nothing to compare with.
        quiet = local & Lanes(strong).eq(PLAIN) & Lanes(target.load(Block.VISITED, I64)).eq(0)
        with fn.when((inside & ~quiet).value):
            me.learn(target, local)
            with fn.range(elements.value) as part:
                where = ((address - low) >> shift).value + part
                me.access(target, local, where, lane, (low + (Lanes(where) << shift)).value)
            me.leave(target, local, lane)
    with fn.when(strong.differs(PLAIN)):
        clock = me.row(me.rank.value) + me.index
        fn.store(clock, (Lanes(fn.load(clock)) + 1).value)
    fn.finish()


def remember_fence(fn: Function, warp: Raw, block: Raw) -> None:
    """Emit a fence of cluster or wider scope: store the warp's vector clock, and advance its own clock. It does
    nothing without a cluster of several blocks, or if races are not checked.

    A relaxed arrival at the cluster's barrier passes on only the accesses before the warp's last fence.
    """
    foreign, count, index = block.load(Block.FOREIGN, I64), block.load(Block.CLUSTER, I64), warp.load(Warp.INDEX, I64)
    with fn.when(foreign.differs(0)):
        own = fn.cast(block.load(Block.CLOCKS, I64) + index * ROW, I32)
        with fn.range(count) as rank:
            there = fn.cast(foreign + (index * count + rank) * ROW, I32)
            fenced = fn.cast(foreign + ((index + FENCED) * count + rank) * ROW, I32)
            mine = Lanes(rank).eq(Lanes(block.load(Block.RANK, I64))).value
            with fn.choose(mine) as choice:
                with choice.yes():
                    fn.store(fenced, fn.load(own, LANES))
                with choice.no():
                    fn.store(fenced, fn.load(there, LANES))
        fn.store(own + index, (Lanes(fn.load(own + index)) + 1).value)


class _Access:
    """Code that checks one warp's access to shared memory of the cluster for races, and then records it.

    In its methods, `target` is the block to which the memory belongs, `local` is true if the warp is of that block,
    `where` is the element's index in the shadow, and `at` its shared address.
    """

    def __init__(
        self, fn: Function, module: Module, warp: Raw, insn: Raw, own: Raw, key: Value, strong: Value
    ) -> None:  # fmt: skip
        self.fn, self.module, self.warp, self.insn, self.own, self.key = fn, module, warp, insn, own, key
        self.strong = Lanes(strong)
        self.store = (Lanes(key) & STORE).ne(0)
        self.rank, self.count = Lanes(own.load(Block.RANK, I64)), Lanes(own.load(Block.CLUSTER, I64))
        self.index = warp.load(Warp.INDEX, I64)
        self.clock = Lanes(fn.load(self.row(self.rank.value) + self.index))
        self.site = Lanes(insn.load(Insn.INDEX, I64)).trunc("i32")

    def block(self, rank: Value) -> Raw:
        """Return the `Block` structure of the block of the cluster with this rank."""
        return Raw(self.fn, self.own.base + (Lanes(rank) - self.rank).value * Block.SIZE)

    def row(self, rank: Value) -> Value:
        """Return a pointer to the clocks that this warp knows of the warps of block `rank`."""
        fn = self.fn
        mine = self.own.load(Block.CLOCKS, I64) + self.index * ROW
        other = self.own.load(Block.FOREIGN, I64) + (self.index * self.count.value + rank) * ROW
        return fn.cast(fn.select(Lanes(rank).eq(self.rank).value, mine, other), I32)

    def learn(self, target: Raw, local: Lanes) -> None:
        """Emit, for a volatile or atomic access: raise this warp's clocks to those published at block `target`. A store
        also publishes the maximum of both there. An access to the own block's memory leaves the clocks of its own warps
        alone.
        """
        fn = self.fn
        published = fn.cast(target.load(Block.FOREIGN, I64) + self.count.value * (PUBLISHED * ROW), I32)
        with fn.when(self.strong.ne(PLAIN).value), fn.range(self.count.value) as rank:
            row, there = self.row(rank), published + rank * LANES
            both = Lanes(fn.load(row, LANES)).smax(Lanes(fn.load(there, LANES)))
            # Within one block, volatile and atomic accesses do not order warps (`emulator.races`).
            with fn.when((~(local & Lanes(rank).eq(self.rank))).value):
                fn.store(row, both.value)
            with fn.when(self.store.value):
                fn.store(there, both.value)

    def access(self, target: Raw, local: Lanes, where: Value, lane: Value, at: Value) -> None:
        """Emit the check of one lane's access to one element, and its recording.

        It is compared with accesses of blocks other than the owner and, if the memory is another block's, with those of
        its owner. An access by the owner is recorded only if it is atomic.
        """
        fn = self.fn
        far = target.load(Block.FAR, I64) + where * (self.count.value * FAR)
        with fn.range(self.count.value) as rank:
            entry, own = Raw(fn, fn.cast(far + rank * FAR, I8)), Lanes(rank).eq(self.rank)
            with fn.when((~(local & own)).value):
                self._against_write(target, local, entry, rank, own, lane, at)
                with fn.when(self.store.value):
                    self._against_read(entry, rank, own, lane, at)
        with fn.when((~local).value):
            near = Raw(fn, fn.cast(target.load(Block.RACES, I64), I8) + where * ELEMENT)
            self._against_owner(target, near, lane, at)
        with fn.when((~local | self.strong.eq(ATOMIC)).value):
            self._record(Raw(fn, fn.cast(far + self.rank.value * FAR, I8)), lane)

    def _unknown(self, rank: Value, by: Lanes, clock: Lanes, own: Lanes) -> Lanes:
        """Emit code that tests whether another warp's access at its clock `clock` is unordered with this warp's access.

        `by` is that access's warp * 32 + lane; `own` is true if that warp is of this warp's block.
        """
        known = Lanes(self.row(rank)[(by >> 5).zext("i64").value])
        mine = own & (by >> 5).zext("i64").eq(Lanes(self.index))
        return clock.gt(known) & ~mine

    def _against_write(
        self, target: Raw, local: Lanes, entry: Raw, rank: Value, own: Lanes, lane: Value, at: Value
    ) -> None:  # fmt: skip
        fn = self.fn
        by, how = Lanes(entry.load(WRITE_BY)), Lanes(entry.load(WRITE_STRONG))
        late = self._unknown(rank, by, Lanes(entry.load(WRITE_CLOCK)), own) & (how.eq(PLAIN) | self.strong.eq(PLAIN))
        # The machine code of an owner's volatile read may not show that it is volatile, so a read of a flag is allowed.
        polls = local & ~self.store & how.eq(STRONG)
        with fn.when((late & polls).value):
            published = fn.cast(target.load(Block.FOREIGN, I64) + self.count.value * (PUBLISHED * ROW), I32)
            with fn.range(self.count.value) as each, fn.when(Lanes(each).ne(self.rank).value):
                row = self.row(each)
                known = Lanes(fn.load(row, LANES)).smax(Lanes(fn.load(published + each * LANES, LANES)))
                fn.store(row, known.value)
        with fn.when((late & ~polls).value):
            self._note(rank, by, Lanes(entry.load(WRITE_SITE)), lane, at)

    def _against_read(self, entry: Raw, rank: Value, own: Lanes, lane: Value, at: Value) -> None:
        by = Lanes(entry.load(READ_FAR_BY))
        late = self._unknown(rank, by, Lanes(entry.load(READ_FAR_CLOCK)), own)
        with self.fn.when(late.value):
            self._note(rank, by, Lanes(entry.load(READ_FAR_SITE)), lane, at)

    def _against_owner(self, target: Raw, near: Raw, lane: Value, at: Value) -> None:
        """Emit the comparison with accesses of the owner's warps; `near` is the element in the owner's own shadow."""
        fn, rank = self.fn, target.load(Block.RANK, I64)
        never = Lanes(fn.constant(0, I32)).ne(0)
        by = Lanes(near.load(WRITER))
        late = self._unknown(rank, by, Lanes(near.load(WRITER_CLOCK)), never)
        # An asynchronous reduction is atomic too, so it does not race with atomic operations.
        sums = Lanes(near.load(WRITER_FENCES)).eq(BY_PROXY) & self.strong.eq(ATOMIC)
        with fn.when((late & ~sums).value):
            self._note(rank, by, Lanes(near.load(WRITER_INSTRUCTION)), lane, at)
        # As above: the owner's volatile reads may look like plain ones.
        with fn.when((self.store & self.strong.ne(STRONG)).value):
            clocks, known = Lanes(near.load(READ_CLOCK, I32, LANES)), Lanes(fn.load(self.row(rank), LANES))
            unordered = clocks.gt(known).mask_bits()
            with fn.when(unordered.ne(0).value):
                who = fn.zero_extend(unordered.call_flag("cttz", flag=True).value)
                read = Lanes(near.load(who * 4 + READ_BY))
                thread = reader_of(target, Lanes(who), read).trunc("i32")
                launch = Raw(fn, fn.cast(self.warp.load(Warp.LAUNCH, I64), I8))
                reader = launch.load(Launch.CODE, I64) + fn.zero_extend((read >> 11).value) * Insn.SIZE
                volatile = Lanes(Raw(fn, fn.cast(reader, I8)).load(Insn.STRONG)).ne(0) & self.strong.ne(PLAIN)
                with fn.when((~volatile).value):
                    self._note(rank, thread, read >> 11, lane, at)

    def _record(self, entry: Raw, lane: Value) -> None:
        fn = self.fn
        by = ((Lanes(self.index).trunc("i32") << 5) | Lanes(fn.convert(lane, I32))).value
        with fn.choose(self.store.value) as choice:
            with choice.yes():
                for offset, value in (
                    (WRITE_CLOCK, self.clock.value), (WRITE_BY, by), (WRITE_SITE, self.site.value),
                    (WRITE_STRONG, self.strong.value),
                ):  # fmt: skip
                    entry.store(offset, value)
            with choice.no(), fn.when(self.strong.eq(PLAIN).value):
                for offset, value in (
                    (READ_FAR_CLOCK, self.clock.value), (READ_FAR_BY, by), (READ_FAR_SITE, self.site.value),
                ):  # fmt: skip
                    entry.store(offset, value)

    def leave(self, target: Raw, local: Lanes, lane: Value) -> None:
        """Emit the record of an access to another block's memory, which must be ordered before that block's end.

        The emitted code does nothing if the memory belongs to the warp's own block.
        """
        fn = self.fn
        with fn.when((~local).value):
            place = (self.rank.value * LANES + self.index) * VISIT
            visit = Raw(fn, fn.cast(target.load(Block.VISITS, I64) + place, I8))
            for offset, value in ((0, self.clock.value), (4, self.site.value), (8, fn.convert(lane, I32))):
                visit.store(offset, value)
            target.store(Block.VISITED, 1, I64)

    def _note(self, rank: Value, by: Lanes, site: Lanes, lane: Value, at: Value) -> None:
        extra = Lanes(self.fn.zero_extend(self.key) + SHARED) | (by.zext("i64") << 32)
        other = self.block(rank).load(Block.LINEAR, I64), site.zext("i64").value
        note_race(self.fn, self.module, self.warp, self.insn, (lane, at, extra.value), other)


def note_race(
    fn: Function, module: Module, warp: Raw, insn: Raw, access: tuple[Value | int, Value, Value],
    other: tuple[Value, Value],
) -> None:  # fmt: skip
    """Emit the record of a race between blocks of a cluster.

    `access` is (lane, address, `extra`) of the access that finds it; `other` is the earlier access: (number of its
    block in the grid, index of its instruction).
    """
    note_more(fn, module, warp, (insn.base, Kind.RACE_CLUSTER, *access, other[1]), other[0])
