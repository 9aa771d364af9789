"""Warpgroup multiplications in flight: they are queued at the issue, and executed at the wait for their group.

That is the latest moment at which the hardware may read the operands and write the accumulators; with a seed
(`Geometry.landing_seed`), multiplications execute at random earlier moments. Each warp of a warpgroup computes 16 of
the 64 rows and has its own queue. The first warp that waits executes the multiplications of all four.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gemmlab.emulator.instruction_layout import Kind
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES, ROW, Block, Status, Warp
from gemmlab.emulator.raw import Raw
from gemmlab.emulator.wgmma_layout import WARPGROUP, Flight
from gemmlab.emulator.wgmma_races import column_of
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64, pointer
from gemmlab.ir.values import Value

ISSUE = (
    ("warp", pointer(I8)), ("insn", pointer(I8)), ("a", I64), ("b", I64), ("shape", I64), ("source", I64),
    ("target", I64), ("registers", I64), ("closes", I64),
)  # fmt: skip
"""Arguments: the fields of an entry of `Flight`, and `closes`, which is 1 if the group ends with the multiplication. If
`target` is 0, nothing is multiplied, and only the group ends."""
HAS_ENDED, TOO_FEW, UNFINISHED = 1, 2, 3
"""`extra` of an event, with the meaning of its `address`: a warp has ended without the instruction (its first thread);
the block has fewer than four warps of the warpgroup (their number); the warp ends with multiplications in flight (their
number)."""
WAIT = (("warp", pointer(I8)), ("insn", pointer(I8)), ("left", I64))
LEARN = (("warp", pointer(I8)), ("last", I64))


def emit_issue(fn: Function, module: Module) -> None:
    """Emit the body of `issue_wgmma(...)` (arguments: `ISSUE`): append a multiplication to the warp's queue.

    If the queue is full, its oldest multiplication is executed first.
    """
    warp_ptr, _insn, *_rest = fn.args
    warp = Raw(fn, warp_ptr)
    flight = Raw(fn, fn.cast(warp.load(Warp.FLIGHT, I64), I8))
    insn, a, b, shape, source, target, registers, closes = fn.args[1:]
    with fn.when(target.differs(0)):
        with fn.when(flight.load(Flight.COUNT, I64) >= Flight.CAPACITY):
            fn.call(module["land_oldest"], warp_ptr)
        entry = entry_at(fn, flight, flight.load(Flight.COUNT, I64))
        number = insn.fn.emit(I64, f"ptrtoint ptr {insn.name} to i64")
        for offset, value in (
            (Flight.ENTRY_INSN, number), (Flight.ENTRY_A, a), (Flight.ENTRY_B, b), (Flight.ENTRY_SHAPE, shape),
            (Flight.ENTRY_SOURCE, source), (Flight.ENTRY_TARGET, target), (Flight.ENTRY_REGISTERS, registers),
            (Flight.ENTRY_GROUP, flight.load(Flight.GROUP, I64)),
            (Flight.ENTRY_NUMBER, flight.load(Flight.ISSUED, I64)),
        ):  # fmt: skip
            entry.store(offset, value, I64)
        fn.call(module["know"], warp_ptr, entry.base)
        fn.call(module["compare_proxies"], warp_ptr, entry.base)
        flight.add(Flight.COUNT, 1)
        flight.add(Flight.ISSUED, 1)
        with fn.when(flight.load(Flight.RANDOM, I64).differs(0)):
            _land_at_random(fn, module, flight)
    with fn.when(closes.differs(0)):
        _end_of_group(fn, flight, flight.load(Flight.GROUP, I64))[0] = flight.load(Flight.ISSUED, I64)
        flight.add(Flight.GROUP, 1)
    fn.finish()


def _end_of_group(fn: Function, flight: Raw, group: Value) -> Value:
    """Return a pointer to the number of multiplications issued up to the end of group number `group`.

    The pointer is valid only for the last `END_TURNS` groups.
    """
    return fn.cast(flight.at(Flight.ENDS, I64), I64) + (group & (Flight.END_TURNS - 1))


def _land_at_random(fn: Function, module: Module, flight: Raw) -> None:
    """Emit code that executes a random number of the oldest multiplications.

    The random generator is Knuth's linear congruential one (MMIX).
    """
    with fn.loop() as done:
        state = Lanes(flight.load(Flight.RANDOM, I64)) * 6364136223846793005 + 1442695040888963407
        flight.store(Flight.RANDOM, state.value, I64)
        fn.leave_if(done, flight.load(Flight.COUNT, I64).equals(0))
        fn.leave_if(done, state.lt(0).value)
        fn.call(module["land_oldest"], fn.args[0])


def entry_at(fn: Function, flight: Raw, index: Value | int) -> Raw:
    """Return entry number `index` of the queue."""
    return Raw(fn, flight.base + (fn.constant(index, I64) * Flight.ENTRY_SIZE + Flight.ENTRY))


def emit_land_oldest(fn: Function, module: Module) -> None:
    """Emit the body of `land_oldest(warp)`: execute the warp's oldest multiplication in flight and remove it."""
    (warp_ptr,) = fn.args
    warp = Raw(fn, warp_ptr)
    flight = Raw(fn, fn.cast(warp.load(Warp.FLIGHT, I64), I8))
    first = entry_at(fn, flight, 0)
    fn.call(module["multiply"], warp_ptr, first.base)
    flight.store(Flight.LANDED, first.at(Flight.ENTRY_KNOWN, I32)[warp.load(Warp.INDEX, I64)])
    left = flight.load(Flight.COUNT, I64) - 1
    flight.store(Flight.COUNT, left, I64)
    with fn.range(left) as index:
        to, source = entry_at(fn, flight, index), entry_at(fn, flight, index + 1)
        for offset in range(0, Flight.ENTRY_SIZE, ROW // 2):
            fn.store(to.at(offset, I32), fn.load(source.at(offset, I32), LANES // 2))
    fn.finish()


@dataclass(frozen=True, slots=True)
class _Group:
    """The warps of a warpgroup."""

    fn: Function
    warp: Raw

    @contextmanager
    def each(self) -> Iterator[tuple[Raw, Raw]]:
        """Emit a loop over the warps; yield (warp, its `Flight`) for the loop's body."""
        fn = self.fn
        block = Raw(fn, fn.cast(self.warp.load(Warp.BLOCK, I64), I8))
        warps, size = fn.cast(block.load(Block.WARPS, I64), I8), block.load(Block.WARP_SIZE, I64)
        first = self.warp.load(Warp.INDEX, I64) & -WARPGROUP
        with fn.range(first, fn.minimum(first + WARPGROUP, block.load(Block.WARP_COUNT, I64))) as index:
            fellow = Raw(fn, warps + index * size)
            yield fellow, Raw(fn, fn.cast(fellow.load(Warp.FLIGHT, I64), I8))


def emit_wait(fn: Function, module: Module) -> None:
    """Emit the body of `wait_wgmma(warp, insn, left)`: execute all groups but the last `left`, for all four warps.

    The function returns 0, or 1 if one of the warps has not issued the groups yet; then it executes nothing. It records
    an event for a warp that has ended without issuing them, and does not wait for that warp. A multiplication is one
    operation of four warps: if one of them has waited for it, it is complete for all. Programs rely on that when one
    thread of a warpgroup releases a stage.
    """
    warp_ptr, insn, left = fn.args
    warp = Raw(fn, warp_ptr)
    flight, group = Raw(fn, fn.cast(warp.load(Warp.FLIGHT, I64), I8)), _Group(fn, warp)
    limit = flight.load(Flight.GROUP, I64) - left
    # Groups older than the last `END_TURNS` are complete, because waits for later groups came in between.
    last = fn.var(I64, -1)
    with fn.when(limit > 0):
        last.set(_end_of_group(fn, flight, limit - 1)[0] - 1)
    missing = fn.var(I64, 0)
    with group.each() as (fellow, other):
        behind = Lanes(other.load(Flight.ISSUED, I64)).le(Lanes(last.read()))
        with fn.when(behind.value), fn.choose(fellow.load(Warp.STATE).equals(Status.DONE)) as choice:
            with choice.yes():
                thread = fellow.load(Warp.INDEX, I64) * LANES
                fn.call(module["note"], warp_ptr, insn, Kind.WARPGROUP, 0, thread, HAS_ENDED, -1)
            with choice.no():
                missing.set(1)
    with fn.when(missing.read().differs(0)):
        fn.ret(1)
    with group.each() as (fellow, other), fn.loop() as done:
        fn.leave_if(done, other.load(Flight.COUNT, I64).equals(0))
        fn.leave_if(done, entry_at(fn, other, 0).load(Flight.ENTRY_NUMBER, I64) > last.read())
        fn.call(module["land_oldest"], fellow.base)
    fn.call(module["learn"], warp_ptr, last.read())
    # A lane's writes after the wait do not race with the multiplications' reads, which count as those of other lanes.
    warp.add(Warp.SYNCS, 1)
    fn.finish(0)


def emit_learn(fn: Function) -> None:
    """Emit the body of `learn(warp, last)`: order the reads of the warpgroup's multiplications up to number `last`
    before what the warp does next.
    """
    warp, last = Raw(fn, fn.args[0]), Lanes(fn.args[1])
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    with fn.when(block.load(Block.RACES, I64).differs(0)):
        row = fn.cast(block.load(Block.CLOCKS, I64), I32) + warp.load(Warp.INDEX, I64) * LANES
        with _Group(fn, warp).each() as (fellow, other):
            index = fellow.load(Warp.INDEX, I64)
            row[index] = Lanes(row[index]).smax(Lanes(other.load(Flight.LANDED))).value
        column, start = column_of(fn, block, warp.load(Warp.INDEX, I64))
        with fn.when(Lanes(start).ne(0).value):
            row[column] = Lanes(row[column]).smax(Lanes(start) + last.trunc("i32")).value
    fn.finish()
