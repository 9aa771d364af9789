"""Block barriers (BAR): arrivals, releases, and errors in their use."""

from __future__ import annotations

from gemmlab.emulator.instruction_layout import Kind
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import BARRIERS, LANES, ROW, Block, Status, Wait, Warp
from gemmlab.emulator.loop import GROUP_ARGUMENT, GROUP_WAIT, RELEASED, group_at
from gemmlab.emulator.raw import Raw
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64, Type, pointer
from gemmlab.ir.values import Value

ARRIVE = (
    ("warp", pointer(I8)),
    ("insn", pointer(I8)),
    ("execute", I32),
    ("number", I64),
    ("threads", I64),
    ("truth", I32),
    ("arrive_only", I32),
)
NO_SUCH_BARRIER = 2
"""`extra` of the event for a barrier number of 16 or more; its `address` is that number."""
RELEASE = (("warp", pointer(I8)), ("insn", pointer(I8)), ("number", I64))


def _block(fn: Function, warp: Raw) -> Raw:
    return Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))


def _barrier(fn: Function, block: Raw, number: Value) -> Raw:
    return Raw(fn, block.base + ((number & 15) * Block.BARRIER_SIZE + Block.BARRIER))


def own_clock(fn: Function, block: Raw, index: Value) -> Value:
    """Return a pointer to the i32 clock of warp `index` itself: element `index` of its own vector clock."""
    return fn.cast(block.load(Block.CLOCKS, I64), I32) + (index * LANES + index)


def _know(fn: Function, block: Raw, index: Value) -> Value:
    """Return a pointer to the vector clock of warp `index`: a row with the clock that it knows of each warp."""
    return fn.cast(block.load(Block.CLOCKS, I64), I32) + index * LANES


def emit_arrive(fn: Function, module: Module) -> None:
    """Emit the body of `arrive(...)`, which returns `SWITCH` if all lanes of the running group now wait, else `GO`.

    It is `SWITCH` even if the arrival itself releases the barrier. `arrive` records an event if not all of the warp's
    threads arrive together. An arrival at a barrier that does not exist does not wait, and is recorded too. `threads`:
    number to wait for, 0 for all of the block; `truth`: mask of the lanes whose predicate is true; `arrive_only`: 1 for
    BAR.ARV, plus 256 times the reduction (1 and, 2 or, 3 count; 0 none).
    """
    warp_ptr, insn, execute, number, threads, truth, arrive_only = fn.args
    warp = Raw(fn, warp_ptr)
    block = _block(fn, warp)
    lanes = Lanes(execute)
    with fn.when(Lanes(number).uge(BARRIERS).value):
        first = fn.zero_extend(lanes.call_flag("cttz", flag=True).value)
        fn.call(module["note"], warp_ptr, insn, Kind.BARRIER, first, number, NO_SUCH_BARRIER, -1)
        fn.ret(Status.GO)
    barrier = _barrier(fn, block, number)
    alone = (Lanes(warp.load(Warp.ACTIVE)).ne(lanes)) | (lanes | Lanes(warp.load(Warp.EXITED))).ne(-1)
    first = fn.zero_extend(lanes.call_flag("cttz", flag=True).value)
    with fn.when(alone.value):
        fn.call(module["note"], warp_ptr, insn, Kind.BARRIER, first, number, 0, -1)
    index = warp.load(Warp.INDEX, I64)
    with fn.when(block.load(Block.RACES, I64).differs(0)):
        row = barrier.at(Block.BARRIER_CLOCKS, I32)
        joined = Lanes(fn.load(row, LANES)).smax(Lanes(fn.load(_know(fn, block, index), LANES)))
        fn.store(row, joined.value)
        _pass_on(fn, block, index, number + LANES)
        clock = own_clock(fn, block, index)
        fn.store(clock, (Lanes(fn.load(clock)) + 1).value)
    barrier.add(Block.BARRIER_ARRIVED, fn.zero_extend(lanes.call("ctpop").value))
    barrier.add(Block.BARRIER_TRUE, fn.zero_extend(Lanes(truth).call("ctpop").value))
    barrier.store(Block.BARRIER_WAITING, threads, I64)
    warp.add(Warp.SYNCS, 1)
    block.add(Block.EPOCH, 1)
    barrier.store(Block.BARRIER_MODE, fn.zero_extend((Lanes(arrive_only) >> 8).value), I64)
    with fn.when((Lanes(arrive_only) & 255).eq(0).value):
        fn.call(module["push"], warp_ptr, warp.load(Warp.PC, I64), execute, Wait.BARRIER, number)
        warp.store(Warp.ACTIVE, (Lanes(warp.load(Warp.ACTIVE)) & ~lanes).value)
    fn.call(module["release"], warp_ptr, insn, number)
    fn.finish(fn.select(Lanes(warp.load(Warp.ACTIVE)).eq(0).value, Status.SWITCH, Status.GO, I32))


def emit_release(fn: Function, module: Module) -> None:
    """Emit the body of `release(warp, insn, number)`: if enough threads have arrived at barrier `number`, release it.

    All groups of lanes that wait at this barrier can then go on. If the barrier has a reduction, its result is stored
    at barrier 0, whatever `number` is (`Block.BARRIER`).
    """
    warp_ptr, insn, number = fn.args
    block = _block(fn, Raw(fn, warp_ptr))
    barrier = _barrier(fn, block, number)
    arrived, counted = barrier.load(Block.BARRIER_ARRIVED, I64), barrier.load(Block.BARRIER_WAITING, I64)
    live = block.load(Block.LIVE, I64)
    needed = fn.select(counted.equals(0), live, counted)
    complete = Lanes(arrived).ge(Lanes(needed)) & Lanes(arrived).gt(0)
    with fn.when(complete.value):
        absent = Lanes(counted).eq(0) & Lanes(live).lt(Lanes(block.load(Block.THREADS, I64)))
        with fn.when(absent.value):
            fn.call(module["note"], warp_ptr, insn, Kind.BARRIER, 0, number, 1, -1)
        true = barrier.load(Block.BARRIER_TRUE, I64)
        # B2R, which reads the results, names no barrier: those of the block's last reduction are stored at barrier 0.
        mode = barrier.load(Block.BARRIER_MODE, I64)
        with fn.when(mode.differs(0)):
            everyone, someone = fn.zero_extend(true.equals(arrived)), fn.zero_extend(true.differs(0))
            results = Raw(fn, block.base + Block.BARRIER)
            results.store(Block.BARRIER_RESULT, true, I64)
            results.store(Block.BARRIER_TRUTH, fn.select(mode.equals(1), everyone, someone), I64)
        barrier.store(Block.BARRIER_ARRIVED, 0, I64)
        barrier.store(Block.BARRIER_TRUE, 0, I64)
        barrier.store(Block.BARRIER_WAITING, 0, I64)
        _wake(fn, block, barrier, number)
    fn.finish()


def _wake(fn: Function, block: Raw, barrier: Raw, number: Value) -> None:
    size = block.load(Block.WARP_SIZE, I64)
    first = fn.cast(block.load(Block.WARPS, I64), I8)
    clocks = Lanes(fn.load(barrier.at(Block.BARRIER_CLOCKS, I32), LANES))
    racing = block.load(Block.RACES, I64).differs(0)
    with fn.range(block.load(Block.WARP_COUNT, I64)) as index:
        warp = Raw(fn, first + index * size)
        with fn.range(warp.load(Warp.GROUPS, I64)) as which:
            group = group_at(fn, warp, which)
            waiting = Lanes(group.load(GROUP_WAIT)).eq(Wait.BARRIER)
            mine = Lanes(group.load(GROUP_ARGUMENT, I64)).eq(Lanes(number))
            with fn.when((waiting & mine).value):
                group.store(GROUP_WAIT, Wait.READY)
                group.store(GROUP_ARGUMENT, RELEASED, I64)
                with fn.when(racing):
                    row = _know(fn, block, index)
                    fn.store(row, Lanes(fn.load(row, LANES)).smax(clocks).value)
                    _pass_on(fn, block, number + LANES, index)


def _pass_on(fn: Function, block: Raw, source: Value, to: Value) -> None:
    """Emit, for a cluster: raise the clocks in row `to` of `Block.FOREIGN` to those of row `source`."""
    foreign, blocks = block.load(Block.FOREIGN, I64), block.load(Block.CLUSTER, I64)
    with fn.when(foreign.differs(0)), fn.range(blocks) as rank:
        read, write = (fn.cast(foreign + (row * blocks + rank) * ROW, I32) for row in (source, to))
        fn.store(write, Lanes(fn.load(write, LANES)).smax(Lanes(fn.load(read, LANES))).value)


def emit_release_all(fn: Function, module: Module) -> None:
    """Emit the body of `release_all(warp, insn)`: after threads have ended, release each barrier that is complete
    without them.
    """
    warp_ptr, insn = fn.args
    block = _block(fn, Raw(fn, warp_ptr))
    with fn.range(16) as number:
        barrier = _barrier(fn, block, number)
        with fn.when(barrier.load(Block.BARRIER_ARRIVED, I64).differs(0)):
            fn.call(module["release"], warp_ptr, insn, number)
    fn.finish()


def emit_barriers(module: Module) -> None:
    """Emit the compiled functions `release`, `arrive` and `release_all`."""
    with module.function("release", RELEASE) as fn:
        emit_release(fn, module)
    with module.function("arrive", ARRIVE, I32, exported=True) as fn:
        emit_arrive(fn, module)
    with module.function("release_all", RELEASE[:2], exported=True) as fn:
        emit_release_all(fn, module)


__all__ = ["ARRIVE", "Type", "emit_barriers", "own_clock"]
