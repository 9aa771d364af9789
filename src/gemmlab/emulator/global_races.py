"""Races in global memory, between warps of a block and between blocks; at least one side is a plain store.

A shadow has four accesses for each element: the last plain store, and of all others the last one, the last one by
another warp of the same block, and the last one by another block. Within a block, barriers order accesses, as for
shared memory. Between blocks, a fence (`__threadfence`) and an atomic or volatile store after it publish the block's
earlier accesses; they are ordered before all accesses that follow an atomic or volatile access of another block. This
is recorded for whole blocks, not for each variable, so a kernel that synchronises through the wrong variable is not
reported.

Two atomic or volatile accesses do not race with each other, nor does a plain load with one. A store that does not
change the value counts as a load, and no earlier store races with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gemmlab.emulator.address_space import ACCESS, STORE, bit_of
from gemmlab.emulator.instruction_layout import Event, Insn, Kind
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import Launch
from gemmlab.emulator.layout import LANES, Block, Warp
from gemmlab.emulator.memory_map import Reach
from gemmlab.emulator.raw import Raw
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64
from gemmlab.ir.values import Value

RECORD = 16
"""Bytes of the record of one access; i32 each: block + 1 (0: no access), the warp's clock, time as in `Launch.TIME`,
and site: instruction * 2048, plus `STRONG` or 0, plus warp * 32 + lane."""
RECORD_BLOCK, RECORD_CLOCK, RECORD_TIME, RECORD_SITE = range(0, RECORD, 4)
WRITER, LAST, FELLOW, FOREIGN = range(0, 4 * RECORD, RECORD)
"""Offsets of an element's records: the last plain store; of all other accesses the last one, the last one by another
warp of that one's block, and the last one by another block.
"""
CELL = 4 * RECORD
"""Bytes of shadow for one element."""
STRONG = 1 << 10
"""Flag in `RECORD_SITE`: the access was atomic or volatile. The bits below it are warp * 32 + lane, those above it the
index of the instruction."""
RELEASES = 1 << 16
"""Number of entries in the table of publications. The low bits of a block's number + 1 are the index of its entry, so
blocks share entries.
"""
RELEASE = 24
"""Bytes of an entry in the table of publications: block + 1, time of the block's fence before the publication, and time
of the publication; i64 each, times as in `Launch.TIME`."""
RELEASE_BLOCK, RELEASE_FENCE, RELEASE_TIME = range(0, RELEASE, 8)
GLOBAL_RACE = (*ACCESS, ("strong", I32))
"""Arguments of `global_race`: those of `ACCESS`, and `strong`: 1 for atomic and volatile accesses, else 0."""


@dataclass(frozen=True, slots=True)
class Shadows:
    """The shadows of one launch. The object must exist until the launch has ended."""

    table: npt.NDArray[np.int64]
    """Row (host address of the shadow, bytes of memory covered) for each slot of the memory map; (0, 0) if free."""
    releases: npt.NDArray[np.int64]
    """The table of publications: `RELEASES` entries, each with the last publication of a block."""
    cells: tuple[npt.NDArray[np.uint8], ...] = field(repr=False)


def shadows(reach: Reach, shift: int) -> Shadows:
    """Return new shadows for all allocations, with one element for 2^shift bytes.

    Pages of a shadow that are never accessed take no memory. Raises `MemoryError` if there is not enough memory.
    """
    table, cells = np.zeros((Launch.SLOT_COUNT, 2), np.int64), []
    for number in np.flatnonzero(reach.slots[:, 1]):
        covered = int(reach.slots[number, 0])
        elements = (covered >> shift) + 1
        try:
            cells.append(np.zeros(elements * CELL, np.uint8))
        except MemoryError as error:
            nbytes = elements * CELL
            raise MemoryError(f"looking for races in global memory needs {nbytes} bytes for one array") from error
        table[number] = cells[-1].ctypes.data, covered
    return Shadows(table, np.zeros(RELEASES * RELEASE // 8, np.int64), tuple(cells))


def fence(launch: Raw, block: Raw) -> None:
    """Emit a fence: a publication after it covers the block's accesses before the fence, and none after it."""
    now = launch.load(Launch.TIME, I64)
    block.store(Block.FENCED, now, I64)
    launch.store(Launch.TIME, now + 1, I64)


def emit_global_race(fn: Function, module: Module) -> None:
    """Emit the body of `global_race(...)`, called before each load, store, atomic operation and cp.async copy.

    It returns at once if races in global memory are not checked.
    """
    warp_ptr, insn_ptr, execute, addresses, words, key, strong = fn.args
    warp, insn = Raw(fn, warp_ptr), Raw(fn, insn_ptr)
    launch = Raw(fn, fn.cast(warp.load(Warp.LAUNCH, I64), I8))
    with fn.when(launch.load(Launch.RACES, I64).equals(0)):
        fn.ret()
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    publishes = Lanes(strong).ne(0) & Lanes(key).uge(STORE) & Lanes(block.load(Block.FENCED, I64)).ne(0)
    with fn.when(strong.differs(0)):
        block.store(Block.SEEN, launch.load(Launch.TIME, I64), I64)
    me = _Access(fn, module, warp, insn, launch, block, words, key, strong)
    width = fn.zero_extend((Lanes(key) & 255).value)
    shift = Lanes(launch.load(Launch.RACE_SHIFT, I64))
    elements = Lanes(width + (Lanes(fn.constant(1, I64)) << shift).value - 1) >> shift
    slots, table = fn.cast(launch.load(Launch.SLOTS, I64), I8), fn.cast(launch.load(Launch.RACES, I64), I64)
    with fn.range(LANES) as lane, fn.when(bit_of(fn, execute, lane)):
        address = Lanes(addresses[lane])
        number = address >> Launch.SLOT_BITS
        known = number.ult(Launch.SLOT_COUNT)
        index = known.select(number, 0).value
        slot = Raw(fn, slots + index * Launch.SLOT_SIZE)
        offset = address & ((1 << Launch.SLOT_BITS) - 1)
        # Memory that was allocated after the launch began has no shadow.
        inside = known & (offset + Lanes(width)).ule(Lanes(table[index * 2 + 1]))
        shadow = fn.cast(table[index * 2], I8)
        with fn.when(inside.value), fn.range(elements.value) as part:
            cell = Raw(fn, shadow + ((offset >> shift).value + part) * CELL)
            start = Lanes(part) << shift
            host = Lanes(slot.load(8, I64)) + offset + start
            me.access(cell, lane, address + start, host, start)
    with fn.when(publishes.value):
        now = launch.load(Launch.TIME, I64) + 1
        launch.store(Launch.TIME, now, I64)
        mine = _release(fn, launch, me.number)
        mine.store(RELEASE_BLOCK, fn.zero_extend(me.number.value), I64)
        mine.store(RELEASE_FENCE, block.load(Block.FENCED, I64), I64)
        mine.store(RELEASE_TIME, now, I64)
    fn.finish()


def _release(fn: Function, launch: Raw, number: Lanes) -> Raw:
    """Return the entry for block `number - 1` in the table of publications; another block may have written it last."""
    place = (number & (RELEASES - 1)).zext("i64").value
    return Raw(fn, fn.cast(launch.load(Launch.PUBLISHED, I64), I8) + place * RELEASE)


class _Access:
    """Code that checks one warp's access against the recorded accesses of an element, and then records it."""

    def __init__(
        self, fn: Function, module: Module, warp: Raw, insn: Raw, launch: Raw, block: Raw, words: Value, key: Value,
        strong: Value,
    ) -> None:  # fmt: skip
        self.fn, self.module, self.warp, self.insn, self.launch, self.block = fn, module, warp, insn, launch, block
        self.words, self.key, self.strong = words, key, Lanes(strong).ne(0)
        self.number = Lanes(block.load(Block.LINEAR, I64)).trunc("i32") + 1
        index = warp.load(Warp.INDEX, I64)
        self.index = Lanes(fn.convert(index, I32))
        self.knows = fn.cast(block.load(Block.CLOCKS, I64), I32) + index * LANES
        self.clock = Lanes(fn.load(self.knows + index))
        self.last_strong = Lanes(block.load(Block.SEEN, I64))
        now, fenced = Lanes(launch.load(Launch.TIME, I64)), Lanes(block.load(Block.FENCED, I64))
        # An atomic access after a fence is itself part of the publication.
        self.time = (self.strong & fenced.ne(0)).select(fenced, now).trunc("i32")
        place = Lanes(insn.load(Insn.INDEX, I64)).trunc("i32") << 11
        self.site = place | self.strong.select(Lanes(fn.constant(STRONG, I32)), 0) | (self.index << 5)
        self.plain_store = Lanes(key).uge(STORE) & ~self.strong

    def access(self, cell: Raw, lane: Value, at: Lanes, host: Lanes, start: Lanes) -> None:
        """Emit the check of one lane's access to one element, and its recording.

        `at` is the element's emulated address, `host` its host address, `start` its byte offset in the access.
        """
        fn = self.fn
        silent = self.plain_store & ~self._changes(host, start, lane)
        with fn.when((~silent).value):
            self._against(cell, WRITER, lane, at)
        with fn.choose((self.plain_store & ~silent).value) as choice:
            with choice.yes():
                for record in (LAST, FELLOW, FOREIGN):
                    self._against(cell, record, lane, at)
                self._put(cell, WRITER, lane)
            with choice.no():
                self._remember(cell, lane)

    def _remember(self, cell: Raw, lane: Value) -> None:
        fn = self.fn
        ours = Lanes(cell.load(LAST + RECORD_BLOCK)).eq(self.number)
        same = ours & ((Lanes(cell.load(LAST + RECORD_SITE)) >> 5) & 31).eq(self.index)
        with fn.when((ours & ~same).value):
            _copy(cell, LAST, FELLOW)
        with fn.when((~ours & Lanes(cell.load(LAST + RECORD_BLOCK)).ne(0)).value):
            _copy(cell, LAST, FOREIGN)
            cell.store(FELLOW + RECORD_BLOCK, 0)
        self._put(cell, LAST, lane)

    def _put(self, cell: Raw, record: int, lane: Value) -> None:
        cell.store(record + RECORD_BLOCK, self.number.value)
        cell.store(record + RECORD_CLOCK, self.clock.value)
        cell.store(record + RECORD_TIME, self.time.value)
        cell.store(record + RECORD_SITE, (self.site | Lanes(self.fn.convert(lane, I32))).value)

    def _against(self, cell: Raw, record: int, lane: Value, at: Lanes) -> None:
        fn = self.fn
        number, site = Lanes(cell.load(record + RECORD_BLOCK)), Lanes(cell.load(record + RECORD_SITE))
        ours, warp_of = number.eq(self.number), (site >> 5) & 31
        known = Lanes(fn.load(self.knows + fn.zero_extend(warp_of.value)))
        within = ours & warp_of.ne(self.index) & Lanes(cell.load(record + RECORD_CLOCK)).gt(known)
        apart = number.ne(0) & ~ours
        if record == FOREIGN:
            # This block's atomic access to the word is ordered after earlier atomic accesses of other blocks to it.
            last = Lanes(cell.load(LAST + RECORD_SITE)) & STRONG
            own = Lanes(cell.load(LAST + RECORD_BLOCK)).eq(self.number)
            apart = apart & ~(own & last.ne(0) & (site & STRONG).ne(0))
        with fn.when((within | apart).value):
            time = Lanes(cell.load(record + RECORD_TIME)).zext("i64")
            with fn.when((~self._ordered(number, time)).value):
                self._note(number, site, ours, lane, at)

    def _ordered(self, number: Lanes, time: Lanes) -> Lanes:
        """Emit code that tests whether block `number - 1` published its accesses up to `time`, and this block made an
        atomic or volatile access after that.
        """
        release = _release(self.fn, self.launch, number)
        by = Lanes(release.load(RELEASE_BLOCK, I64)).trunc("i32")
        in_time = Lanes(release.load(RELEASE_TIME, I64)).le(self.last_strong)
        # A later publication of that block, or of another one, may have overwritten the entry. The time of the earlier
        # one is then unknown: it counts if the access itself came before this block's atomic or volatile access.
        early = time.le(self.last_strong)
        fenced = time.le(Lanes(release.load(RELEASE_FENCE, I64)))
        published = by.eq(number) & ((in_time & fenced) | (~in_time & early))
        return (published | (by.gt(number) & early)) & self.last_strong.ne(0)

    def _changes(self, host: Lanes, start: Lanes, lane: Value) -> Lanes:
        """Emit code that tests whether a plain store changes the element; true for every other access."""
        fn = self.fn
        found = fn.var(I32, 1)
        with fn.when(self.plain_store.value):
            shift = Lanes(self.launch.load(Launch.RACE_SHIFT, I64))
            count = Lanes(fn.constant(1, I64)) << shift
            changes = self.module["store_changes"]
            found.set(fn.call(changes, host.value, self.words, start.value, count.value, lane))
        return Lanes(found.read()).ne(0)

    def _note(self, number: Lanes, site: Lanes, ours: Lanes, lane: Value, at: Lanes) -> None:
        fn = self.fn
        kind = ours.select(Lanes(fn.constant(Kind.RACE_BLOCK, I64)), Kind.RACE_GRID)
        who = (site & (STRONG - 1)).zext("i64")
        extra = Lanes(fn.zero_extend(self.key)) | (who << 32)
        before = self.launch.load(Launch.EVENT_COUNT, I64)
        other = (site >> 11).zext("i64").value
        fn.call(self.module["note"], self.warp.base, self.insn.base, kind.value, lane, at.value, extra.value, other)
        with fn.when(before < self.launch.load(Launch.EVENT_COUNT, I64)):
            event = Raw(fn, fn.cast(self.launch.load(Launch.EVENTS, I64), I8) + before * Event.SIZE)
            event.store(Event.EXTRA2, fn.zero_extend((number - 1).value), I64)


def _copy(cell: Raw, source: int, to: int) -> None:
    for part in range(0, RECORD, 8):
        cell.store(to + part, cell.load(source + part, I64), I64)
