"""The compiled loops: over the instructions of a warp, the groups of a warp, and the warps of a block.

A warp has one running group of lanes and some waiting groups. Lanes diverge at a branch and reconverge at BSYNC and
WARPSYNC: when a group released from a wait is picked, other released groups at the same instruction join it. A group
that has used its budget of instructions goes to the end of the queue, so that a spinning lane cannot starve the lane
that it waits for.
"""

from __future__ import annotations

from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import Launch
from gemmlab.emulator.layout import LANES, ROW, Block, Status, Wait, Warp
from gemmlab.emulator.raw import Raw
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64, pointer
from gemmlab.ir.values import Value

ROUNDS = 200
"""Most rounds, each a turn of every warp of a block, before `run_block` returns to its caller in Python."""
TURN = 20_000
"""Most instructions that a warp executes in one turn, unless the caller asks for another number."""

RELEASED = -1
"""Argument of a group that was released from a wait of any kind (`Wait`), until it is picked. Only a wait for an
mbarrier that timed out leaves its argument."""
GROUP_PC, GROUP_LANES, GROUP_WAIT, GROUP_ARGUMENT = 0, 8, 12, 16
HANDLER = (pointer(I8), pointer(I8), I32)


def emit_push(fn: Function) -> None:
    """Emit the body of `push(warp, pc, lanes, wait, argument)`: add a group at the end of the queue if it has lanes."""
    warp_ptr, pc, lanes, wait, argument = fn.args
    warp = Raw(fn, warp_ptr)
    count = warp.load(Warp.GROUPS, I64)
    # No two groups share a lane, so that there are at most 32 groups with lanes.
    with fn.when((Lanes(lanes).eq(0) | Lanes(count).uge(LANES)).value):
        fn.ret()
    group = Raw(fn, warp_ptr + (count * Warp.GROUP_SIZE + Warp.GROUP))
    group.store(GROUP_PC, pc, I64)
    group.store(GROUP_LANES, lanes)
    group.store(GROUP_WAIT, wait)
    group.store(GROUP_ARGUMENT, argument, I64)
    warp.store(Warp.GROUPS, count + 1, I64)
    fn.finish()


PUSH = (("warp", pointer(I8)), ("pc", I64), ("lanes", I32), ("wait", I32), ("argument", I64))


def group_at(fn: Function, warp: Raw, index: Value) -> Raw:
    """Return the entry of waiting group number `index` in the warp's structure."""
    return Raw(fn, warp.base + (index * Warp.GROUP_SIZE + Warp.GROUP))


def entered_with(fn: Function, warp: Raw, group: Raw) -> Lanes:
    """Emit a load of the mask of the lanes that entered the convergence barrier at which a group waits; return it.

    The result has no meaning if the group waits for something else.
    """
    first = fn.zero_extend(Lanes(group.load(GROUP_LANES)).call_flag("cttz", flag=False).value)
    number = group.load(GROUP_ARGUMENT, I64) & 15
    return Lanes(warp.load(number * ROW + (first * 4 + Warp.CONVERGENCE)))


def have_left(fn: Function, warp: Raw, group: Raw) -> Lanes:
    """Emit code for the mask of the lanes that left (BREAK) the convergence barrier at which a group waits; return it.

    A lane that has left is not in its own mask of the barrier. While a lane is in another function, its mask is 0.
    """
    number = group.load(GROUP_ARGUMENT, I64) & 15
    known = Lanes(fn.load(warp.at(number * ROW + Warp.CONVERGENCE, I32), LANES))
    own = known.lshr(Lanes(fn.load(warp.at(Warp.LANE, I32), LANES))) & 1
    return (known.ne(0) & own.eq(0)).mask_bits()


def emit_settle(fn: Function) -> None:
    """Emit the body of `settle(warp, all_wait)`: make the groups ready whose convergence barrier or WARPSYNC is
    complete.

    A lane may leave a convergence barrier while others are in a function that saved their masks of it in registers;
    they still wait for that lane when they return. So if all groups of the warp wait (`all_wait`), lanes that have left
    do not count.
    """
    warp, all_wait = Raw(fn, fn.args[0]), Lanes(fn.args[1])
    count = warp.load(Warp.GROUPS, I64)
    alive = ~Lanes(warp.load(Warp.EXITED))
    with fn.range(count) as index:
        group = group_at(fn, warp, index)
        wait = group.load(GROUP_WAIT)
        argument = group.load(GROUP_ARGUMENT, I64)
        held = Lanes(wait).eq(Wait.CONVERGE) | Lanes(wait).eq(Wait.WARPSYNC)
        with fn.when(held.value):
            arrived = fn.var(I32, 0)
            left = all_wait.ne(0).select(have_left(fn, warp, group), 0)
            converge = entered_with(fn, warp, group) & ~left
            with fn.range(count) as other:
                fellow = group_at(fn, warp, other)
                same = Lanes(fellow.load(GROUP_WAIT)).eq(Lanes(wait))
                # A group may wait at the same barrier for other lanes: in recursion, or in another branch.
                alike = (entered_with(fn, warp, fellow) & ~left).eq(converge)
                together = Lanes(fellow.load(GROUP_ARGUMENT, I64)).eq(Lanes(argument)) & alike
                with fn.when((same & (together | Lanes(wait).eq(Wait.WARPSYNC))).value):
                    arrived.set((Lanes(arrived.read()) | Lanes(fellow.load(GROUP_LANES))).value)
            needed = Lanes(wait).eq(Wait.CONVERGE).select(converge, Lanes(argument).trunc("i32")) & alive
            with fn.when((needed & ~Lanes(arrived.read())).eq(0).value):
                # Groups that are checked later must still find this one waiting. So it is marked here, and released
                # after the loop.
                group.store(GROUP_ARGUMENT + 8, 1, I64)
    with fn.range(count) as index:
        group = group_at(fn, warp, index)
        with fn.when(group.load(GROUP_ARGUMENT + 8, I64).differs(0)):
            group.store(GROUP_WAIT, Wait.READY)
            group.store(GROUP_ARGUMENT, RELEASED, I64)
            group.store(GROUP_ARGUMENT + 8, 0, I64)
    fn.finish()


def emit_pick(fn: Function, module: Module) -> None:
    """Emit the body of `pick(warp, oldest)`: make a ready group the running one, and return `GO`.

    If no group is ready, it returns `BLOCKED`, or `DONE` if there are no groups. It picks the ready group at the lowest
    instruction, or with `oldest` the ready group that is first in the queue. If that group was released from a wait
    (`RELEASED`), other released groups at the same instruction join it. Groups that only branched there do not join, as
    an H200's counters show.
    """
    warp_ptr, oldest = fn.args
    warp = Raw(fn, warp_ptr)
    count = warp.load(Warp.GROUPS, I64)
    best = fn.var(I64, -1)
    best_pc = fn.var(I64, (1 << 62))
    with fn.range(2) as all_wait, fn.when(Lanes(best.read()).lt(0).value):
        fn.call(module["settle"], warp_ptr, all_wait)
        with fn.range(count) as index:
            group = group_at(fn, warp, index)
            ready = Lanes(group.load(GROUP_WAIT)).eq(Wait.READY)
            pc = group.load(GROUP_PC, I64)
            lower = Lanes(pc).lt(Lanes(best_pc.read())) & Lanes(oldest).eq(0)
            with fn.when((ready & (lower | Lanes(best.read()).lt(0))).value):
                best.set(index)
                best_pc.set(pc)
    with fn.when(Lanes(best.read()).lt(0).value):
        warp.store(Warp.ACTIVE, 0)
        fn.ret(fn.select(count.equals(0), Status.DONE, Status.BLOCKED, I32))
    released = Lanes(group_at(fn, warp, best.read()).load(GROUP_ARGUMENT, I64)).eq(RELEASED)
    lanes = fn.var(I32, 0)
    kept = fn.var(I64, 0)
    with fn.range(count) as index:
        group = group_at(fn, warp, index)
        there = Lanes(group.load(GROUP_PC, I64)).eq(Lanes(best_pc.read()))
        freed = Lanes(group.load(GROUP_ARGUMENT, I64)).eq(RELEASED) & released
        ready = Lanes(group.load(GROUP_WAIT)).eq(Wait.READY)
        joins = (ready & there & freed) | Lanes(index).eq(Lanes(best.read()))
        with fn.choose(joins.value) as choice:
            with choice.yes():
                lanes.set((Lanes(lanes.read()) | Lanes(group.load(GROUP_LANES))).value)
            with choice.no():
                place = group_at(fn, warp, kept.read())
                for offset in range(0, Warp.GROUP_SIZE, 8):
                    place.store(offset, group.load(offset, I64), I64)
                kept += 1
    warp.store(Warp.GROUPS, kept.read(), I64)
    warp.store(Warp.PC, best_pc.read(), I64)
    warp.store(Warp.ACTIVE, lanes.read())
    fn.finish(Status.GO)


def emit_run_warp(fn: Function, module: Module) -> None:
    """Emit the body of `run_warp(warp, budget)`: run one turn of at most `budget` instructions; return its `Status`.

    If groups wait, the running one first goes to the end of the queue, and the first ready group of the queue runs.
    """
    warp_ptr, budget = fn.args
    warp = Raw(fn, warp_ptr)
    launch = Raw(fn, fn.cast(warp.load(Warp.LAUNCH, I64), I8))
    code = launch.load(Launch.CODE, I64)
    left = fn.var(I64, budget)
    with fn.when(warp.load(Warp.GROUPS, I64).differs(0)):
        with fn.when(warp.load(Warp.ACTIVE).differs(0)):
            fn.call(module["push"], warp_ptr, warp.load(Warp.PC, I64), warp.load(Warp.ACTIVE), Wait.READY, 0)
        picked = fn.call(module["pick"], warp_ptr, 1)
        with fn.when(picked.differs(Status.GO)):
            fn.ret(picked)
    result = fn.var(I32, Status.SPENT)
    with fn.loop() as done:
        pc = warp.load(Warp.PC, I64)
        insn = Raw(fn, fn.cast(code + pc * Insn.SIZE, I8))
        active = Lanes(warp.load(Warp.ACTIVE))
        guard = Lanes(warp.load(insn.load(Insn.GUARD, I64))) ^ Lanes(insn.load(Insn.GUARD_XOR))
        execute = active & guard
        insn.add(Insn.EXECUTED, 1)
        insn.add(Insn.ACTIVE, fn.zero_extend(active.call("ctpop").value))
        insn.add(Insn.PREDICATED_ON, fn.zero_extend(execute.call("ctpop").value))
        warp.store(Warp.PC, pc + 1, I64)
        status = fn.var(I32, Status.GO)
        with fn.when(execute.ne(0).value):
            handler = fn.cast(insn.load(Insn.HANDLER, I64), I8)
            status.set(fn.call_pointer(handler, I32, HANDLER, warp_ptr, insn.base, execute.value))
        left += -1
        with fn.when(status.read().differs(Status.GO)):
            with fn.when(status.read().equals(Status.SWITCH)):
                status.set(fn.call(module["pick"], warp_ptr, 0))
            result.set(status.read())
        fn.leave_if(done, status.read().differs(Status.GO))
        fn.leave_if(done, left.read() <= 0)
        result.set(Status.SPENT)
    warp.store(Warp.CLOCK, warp.load(Warp.CLOCK, I64) + (budget - left.read()), I64)
    fn.finish(result.read())


def emit_run_block(fn: Function, module: Module) -> None:
    """Emit the body of `run_block(block, turn, most)`: give turns of at most `turn` instructions to all warps that have
    not ended, in rounds.

    The function returns `DONE` if the block has ended, `BLOCKED` if no warp can go on, `FAULT` after a fault, `SPENT`
    after a round without a change that another thread could notice, and `PAUSED` after `most` rounds or if the launch
    has to stop.
    """
    block_ptr, turn, most = fn.args
    block = Raw(fn, block_ptr)
    count, size = block.load(Block.WARP_COUNT, I64), block.load(Block.WARP_SIZE, I64)
    first = fn.cast(block.load(Block.WARPS, I64), I8)
    launch = Raw(fn, fn.cast(block.load(Block.LAUNCH, I64), I8))
    result = fn.var(I32, Status.DONE)
    rounds = fn.var(I64, 0)
    with fn.loop() as done:
        rounds += 1
        result.set(Status.PAUSED)
        fn.leave_if(done, rounds.read() > most)
        before = block.load(Block.EPOCH, I64)
        ended, spent = fn.var(I64, 0), fn.var(I64, 0)
        failed = fn.var(I32, 0)
        with fn.range(count) as index, fn.when(launch.load(Launch.STOP, I64).equals(0)):
            warp = Raw(fn, first + index * size)
            with fn.choose(warp.load(Warp.STATE).equals(Status.DONE)) as choice:
                with choice.yes():
                    ended += 1
                with choice.no():
                    status = fn.call(module["run_warp"], warp.base, turn)
                    warp.store(Warp.STATE, status)
                    ended += fn.zero_extend(status.equals(Status.DONE))
                    spent += fn.zero_extend(status.equals(Status.SPENT))
                    with fn.when(status.equals(Status.FAULT)):
                        failed.set(1)
        result.set(Status.DONE)
        fn.leave_if(done, ended.read() >= count)
        result.set(Status.FAULT)
        fn.leave_if(done, failed.read().differs(0))
        result.set(Status.PAUSED)
        fn.leave_if(done, launch.load(Launch.STOP, I64).differs(0))
        quiet = Lanes(before).eq(Lanes(block.load(Block.EPOCH, I64)))
        result.set(Status.BLOCKED)
        fn.leave_if(done, (quiet & Lanes(spent.read()).eq(0)).value)
        result.set(Status.SPENT)
        fn.leave_if(done, quiet.value)
    fn.finish(result.read())


def emit_loops(module: Module) -> None:
    """Emit every compiled function of this file; `push`, `run_warp` and `run_block` are exported."""
    with module.function("push", PUSH, exported=True) as fn:
        emit_push(fn)
    with module.function("settle", (("warp", pointer(I8)), ("all_wait", I64))) as fn:
        emit_settle(fn)
    with module.function("pick", (("warp", pointer(I8)), ("oldest", I64)), I32) as fn:
        emit_pick(fn, module)
    with module.function("run_warp", (("warp", pointer(I8)), ("budget", I64)), I32, exported=True) as fn:
        emit_run_warp(fn, module)
    with module.function("run_block", (("block", pointer(I8)), ("turn", I64), ("most", I64)), I32, exported=True) as fn:
        emit_run_block(fn, module)


__all__ = ["LANES", "TURN", "emit_loops"]
