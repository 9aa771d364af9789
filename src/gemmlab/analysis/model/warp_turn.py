"""Compiled code that issues one instruction of a warp, serves its memory request and advances the warp to the next one.

`number` is that of the warp among those of all blocks, `at` the index of an instruction in the code. Names of state
(`queued`, `current`) are those of `room.COLUMNS`.
"""

from __future__ import annotations

from gemmlab.analysis.model.partition import TABLE, larger
from gemmlab.analysis.model.room import (
    AWAIT,
    CLOSE,
    COPY,
    GROUPS,
    IN_A_LINE,
    MEET,
    PARTITIONS,
    RELEASES,
    UNKNOWN,
    Room,
)
from gemmlab.analysis.model.script import NONE
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F64, I64
from gemmlab.ir.values import Value

NUMBER, TIME = ("number", I64), ("time", F64)


def emit_warp(module: Module) -> None:
    """Emit every compiled function that this file describes into `module`."""
    with module.function("go_on", [TABLE, NUMBER, ("since", F64), ("stay", I64)]) as fn:
        _emit_go_on(fn, module)
    with module.function("arrive", [TABLE, ("block", I64), ("sector", I64), TIME], F64) as fn:
        _emit_arrive(fn)
    with module.function("serve", [TABLE, ("block", I64), ("request", I64), TIME, ("latency", F64)], F64) as fn:
        _emit_serve(fn, module)
    with module.function("meet", [TABLE, ("block", I64), TIME], I64) as fn:
        _emit_meet(fn, module)
    with module.function("issue", [TABLE, NUMBER, ("at", I64), ("request", I64), TIME], I64) as fn:
        _emit_issue(fn, module)
    with module.function("turn", [TABLE, NUMBER, TIME], I64) as fn:
        _emit_turn(fn, module)


def _emit_turn(fn: Function, module: Module) -> None:
    """Emit `turn(table, number, time)`: issue the warp's instruction, or queue the warp until the units can take it.

    These are the instruction's pipe, and for a memory request the queue of L1 or the texture units.

    The function returns 1 if the instruction released warps at a barrier, perhaps in other partitions, else 0.
    """
    table, number, time = fn.args
    room = Room(fn, table)
    where = room["begin"][number % room.get("size")] + room["place"][number]
    at, request = room["way"][where], room["requests"][where]
    part = number % PARTITIONS
    until = fn.var(F64, room["pipes"][part * room.get("pipe_count") + room["pipe"][at]])
    with fn.when(request >= 0):
        until.set(larger(fn, until, room.get("l1_free") - room.get("queue")))
        with fn.when(room["texels"][request] > 0.0):
            until.set(larger(fn, until, room.get("texture_free") - room.get("queue")))
    with fn.when(until > time):
        room["ready"][number] = until.read()
        room["queued"][number] = 1
        fn.ret(0)
    fn.finish(fn.call(module["issue"], table, number, at, request, time))


def _emit_issue(fn: Function, module: Module) -> None:
    """Emit `issue(table, number, at, request, time)`: issue instruction `at`; `request` is -1 for none.

    The function returns 1 if the instruction released warps at a barrier, else 0.
    """
    table, number, at, request, due = fn.args
    room = Room(fn, table)
    size = room.get("size")
    block, part = number // size, number % PARTITIONS
    time = fn.call(module["read_banks"], table, part, at, due)
    _emit_stay(room, number, at, time)
    room["times"][at] = room["times"][at] + 1
    room["free"][part] = time + room["slots"][at]
    room["pipes"][part * room.get("pipe_count") + room["pipe"][at]] = time + room["busy"][at]
    latency = room["latency"][at]
    taken, done = fn.var(F64, time), fn.var(F64, time + latency)
    with fn.when(request >= 0):
        done.set(fn.call(module["serve"], table, block, request, time, latency))
        taken.set(room.get("l1_free"))
    released = room["released"] + number * RELEASES
    for barrier, when in ((room["read"][at], taken + room.get("operands")), (room["write"][at], done.read())):
        with fn.when(barrier.differs(NONE)):
            released[barrier] = larger(fn, released[barrier], when)
    role = room["role"][at]
    met = fn.var(F64, time)
    with fn.choose(role.equals(MEET)) as choice:
        with choice.yes():
            met.set(larger(fn, room.get("meet_free"), time) + room.get("joining"))
            room.put("meet_free", met.read())
            waiting = room["waiting"][block]
            room["waiters"][block * size + waiting] = number
            room["waiting"][block] = waiting + 1
        with choice.no():
            _emit_copies(fn, room, number, role, done.read())
            fn.call(module["go_on"], table, number, time + room["stall"][at], 1)
            way = room["end"][number % size] - room["begin"][number % size]
            with fn.when(room["place"][number].equals(way)):
                room["living"][block] = room["living"][block] - 1
    with fn.when(room["waiting"][block].equals(0)):
        fn.ret(0)
    fn.finish(fn.call(module["meet"], table, block, met.read()))


def _emit_stay(room: Room, number: Value, at: Value, until: Value) -> None:
    """Emit code that counts a warp's cycles at instruction `at`, from the end of its last count to the time `until`."""
    stay, issued = room["spent"], room["issued"]
    stay[at] = stay[at] + (until - issued[number])
    issued[number] = until


def _emit_copies(fn: Function, room: Room, number: Value, role: Value, done: Value) -> None:
    """Emit code that notes when a warp's groups of asynchronous copies are complete.

    A copy belongs to the warp's open group. An instruction that ends the group opens the next one, which starts with
    the same completion time. If `GROUPS` are tracked, the oldest one is dropped.
    """
    copies, groups = room["copies"] + number * GROUPS, room["groups"][number]
    with fn.when(role.equals(COPY)):
        copies[groups - 1] = larger(fn, copies[groups - 1], done)
    with fn.when(role.equals(CLOSE)), fn.choose(groups < GROUPS) as choice:
        with choice.yes():
            copies[groups] = copies[groups - 1]
            room["groups"][number] = groups + 1
        with choice.no(), fn.range(GROUPS - 1) as place:
            copies[place] = copies[place + 1]


def _emit_arrive(fn: Function) -> None:
    """Emit `arrive(table, block, sector, time)`: return the time at which a sector that misses L1 arrives.

    `time` is that of the request. The first sector of a granule has the latency `far`. The others have the latency of
    L2, `near`, but arrive no earlier than the first one, and no later than with the latency `far`. Both latencies are
    longer or shorter by the sector's place.
    """
    table, block, sector, time = fn.args
    room = Room(fn, table)
    opened, granule = room["opened"] + block * room.get("granules"), room["granule"][sector]
    later = room["later"][block * room.get("sectors") + sector]
    comes = fn.var(F64, time + room.get("far") + later * room.get("far_spread"))
    with fn.choose(opened[granule].equals(UNKNOWN)) as choice:
        with choice.yes():
            opened[granule] = comes.read()
        with choice.no():
            near = time + room.get("near") + later * room.get("near_spread")
            soon = larger(fn, near, opened[granule])
            comes.set(fn.select(soon < comes.read(), soon, comes.read(), F64))
    fn.finish(comes.read())


def _emit_serve(fn: Function, module: Module) -> None:
    """Emit `serve(table, block, request, time, latency)`: return the time at which the request's result is available.

    `latency` is added to the times of L1, L2 and device memory. The function also advances the times at which L1, the
    texture units and the link to L2 are free.
    """
    table, block, request, time, latency = fn.args
    room = Room(fn, table)
    served = larger(fn, room.get("l1_free"), time) + room["l1"][request]
    room.put("l1_free", served)
    last_part = fn.var(F64, served)
    with fn.when(room["texels"][request] > 0.0):
        fetched = larger(fn, room.get("texture_free"), time) + room["texels"][request]
        room.put("texture_free", fetched)
        last_part.set(larger(fn, served, fetched))
    taken = last_part.read()
    done = fn.var(F64, taken + latency)
    first, last = room["first"][request], room["last"][request]
    with fn.when(first.equals(last)):
        fn.ret(done)
    each = room.get("sector_cycles")
    with fn.when(room["store"][request].differs(0)):
        l2 = fn.var(F64, larger(fn, room.get("l2_free"), time))
        count = fn.emit(F64, f"sitofp i64 {(last - first).name} to double")
        room.put("l2_free", l2 + count * each)
        fn.ret(done)
    known = room["arrival"] + block * room.get("sectors")
    with fn.range(first, last) as place:
        sector = room["sector"][place]
        with fn.when(known[sector].equals(UNKNOWN)):
            l2_free = larger(fn, room.get("l2_free"), time) + each
            room.put("l2_free", l2_free)
            known[sector] = fn.call(module["arrive"], table, block, sector, larger(fn, l2_free, taken)) + latency
        done.set(larger(fn, done, known[sector]))
    fn.finish(larger(fn, done, taken + latency + room.get("l1_latency")))


def _emit_meet(fn: Function, module: Module) -> None:
    """Emit `meet(table, block, time)`: release the warps at a barrier if all warps that have not ended have arrived.

    The function returns 1 if it released them, else 0.
    """
    table, block, time = fn.args
    room = Room(fn, table)
    count = room["waiting"][block]
    with fn.when(count.differs(room["living"][block])):
        fn.ret(0)
    room["waiting"][block] = 0
    with fn.range(count) as place:
        number = room["waiters"][block * room.get("size") + place]
        fn.call(module["go_on"], table, number, time + room.get("barrier"), 0)
    fn.finish(1)


def _emit_go_on(fn: Function, module: Module) -> None:
    """Emit `go_on(table, number, since, stay)`: advance the warp to its next instruction, not before the time `since`.

    If `stay` is 1, the partition prefers this warp; if it is 0, the warp enters the queue. After its last instruction,
    the warp ends.
    """
    table, number, since, stay = fn.args
    room = Room(fn, table)
    warp, part = number % room.get("size"), number % PARTITIONS
    place = room["place"][number] + 1
    with fn.when(place > 0):
        last = room["way"][room["begin"][warp] + place - 1]
        # A warp stays at a barrier until it is released.
        with fn.when(room["role"][last].equals(MEET)):
            _emit_stay(room, number, last, since)
    room["place"][number] = place
    where = room["begin"][warp] + place
    with fn.when(where.equals(room["end"][warp])):
        room.put("finished", larger(fn, room.get("finished"), since))
        fn.ret()
    at = room["way"][where]
    ready = fn.var(F64, since)
    for barrier in range(NONE):
        with fn.when((room["waits"][at] & (1 << barrier)).differs(0)):
            ready.set(larger(fn, ready, room["released"][number * RELEASES + barrier]))
    groups = room["groups"][number]
    with fn.when(room["role"][at].equals(AWAIT) & (groups > room["left"][at] + 1)):
        ready.set(larger(fn, ready, room["copies"][number * GROUPS + groups - room["left"][at] - 2]))
    room["held"][at] = room["held"][at] + (ready.read() - since)
    with fn.when(_elsewhere(fn, room, where, at, place).differs(0)):
        comes = fn.call(module["fetch"], table, part, at // IN_A_LINE, ready)
        room["unfetched"][at] = room["unfetched"][at] + (comes - ready.read())
        ready.set(comes)
    room["ready"][number] = ready.read()
    with fn.choose(stay.differs(0)) as choice:
        with choice.yes():
            room["current"][part] = number
        with choice.no():
            room["queued"][number] = 1
    fn.finish()


def _elsewhere(fn: Function, room: Room, where: Value, at: Value, place: Value) -> Value:
    """Emit code for a value: 0 if instruction `at` follows the one executed before it in the same line of code, else 1.

    `where` is the index of `at` in the column `way`, `place` that on the warp's path.
    """
    found = fn.var(I64, 1)
    with fn.when(place > 0):
        follows = at.equals(room["way"][where - 1] + 1) & (at % IN_A_LINE).differs(0)
        found.set(fn.select(follows, 0, 1))
    return found.read()
