"""Compiled code for one of an SM's four partitions: choice of the warp to issue, instruction cache, register banks.

Names of state (`queued`, `current`) are those of `room.COLUMNS`; `part` is the number of the partition.
"""

from __future__ import annotations

from gemmlab.analysis.model.room import BANKS, NEVER, PARTITIONS, Room
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F64, I64, pointer
from gemmlab.ir.values import Operand, Value

TABLE = ("table", pointer(I64))


def larger(fn: Function, left: Operand, right: Operand) -> Value:
    """Emit code that selects the later of two times."""
    first, second = fn.constant(left, F64), fn.constant(right, F64)
    return fn.select(second > first, second, first, F64)


def emit_partition(module: Module) -> None:
    """Emit every compiled function that this file describes into `module`."""
    with module.function("oldest", [TABLE, ("part", I64)], I64) as fn:
        _emit_oldest(fn)
    with module.function("following", [TABLE, ("part", I64)], F64) as fn:
        _emit_following(fn, module)
    with module.function("take", [TABLE, ("part", I64), ("time", F64)], I64) as fn:
        _emit_take(fn, module)
    with module.function("fetch", [TABLE, ("part", I64), ("line", I64), ("ready", F64)], F64) as fn:
        _emit_fetch(fn)
    with module.function("read_banks", [TABLE, ("part", I64), ("at", I64), ("time", F64)], F64) as fn:
        _emit_read_banks(fn)


def _emit_oldest(fn: Function) -> None:
    """Emit `oldest(table, part)`: return the queued warp that has been ready longest (the first in a tie), or -1."""
    table, part = fn.args
    room = Room(fn, table)
    best, since = fn.var(I64, -1), fn.var(F64, NEVER)
    with fn.range(part, room.get("warps"), PARTITIONS) as number:
        ready = room["ready"][number]
        with fn.when(room["queued"][number].differs(0) & (ready < since)):
            best.set(number)
            since.set(ready)
    fn.finish(best)


def _emit_following(fn: Function, module: Module) -> None:
    """Emit `following(table, part)`: return the earliest time of the next issue.

    It is `NEVER` if all warps of the partition have ended or wait at a barrier.
    """
    table, part = fn.args
    room = Room(fn, table)
    first = fn.var(F64, NEVER)
    for number in (room["current"][part], fn.call(module["oldest"], table, part)):
        with fn.when(number >= 0):
            ready = room["ready"][number]
            with fn.when(ready < first):
                first.set(ready)
    fn.finish(larger(fn, room["free"][part], first))


def _emit_take(fn: Function, module: Module) -> None:
    """Emit `take(table, part, time)`: return the warp that issues at `time`.

    It is the warp that issued last, if it is ready; otherwise the one that `oldest` returns, and the former is queued.
    """
    table, part, time = fn.args
    room = Room(fn, table)
    same = room["current"][part]
    room["current"][part] = -1
    with fn.when(same >= 0), fn.when(room["ready"][same] <= time):
        fn.ret(same)
    found = fn.call(module["oldest"], table, part)
    room["queued"][found] = 0
    with fn.when(same >= 0):
        room["queued"][same] = 1
    fn.finish(found)


def _emit_fetch(fn: Function) -> None:
    """Emit `fetch(table, part, line, ready)`: return the time at which the line of code is available.

    It is not before `ready`, the time at which the warp needs the line. A partition caches `code_lines` lines; a new
    line evicts the least recently used one.
    """
    table, part, line, ready = fn.args
    room = Room(fn, table)
    used = room["used"] + part * room.get("line_count")
    came = room["came"] + part * room.get("line_count")
    now = room.get("uses") + 1
    room.put("uses", now)
    with fn.when(used[line].equals(0)):
        comes = larger(fn, room["fetched"][part] + room.get("fetch"), ready)
        room["fetched"][part] = comes
        came[line] = comes
        with fn.choose(room["lines"][part] >= room.get("code_lines")) as choice:
            with choice.yes():
                oldest, since = fn.var(I64, 0), fn.var(I64, now)
                with fn.range(room.get("line_count")) as other:
                    there = used[other].differs(0)
                    with fn.when(there & (used[other] < since)):
                        oldest.set(other)
                        since.set(used[other])
                used[oldest] = 0
            with choice.no():
                room["lines"][part] = room["lines"][part] + 1
    used[line] = now
    fn.finish(larger(fn, came[line], ready))


def _emit_read_banks(fn: Function) -> None:
    """Emit `read_banks(table, part, at, time)`: return the time at which instruction `at`, ready at `time`, issues.

    It is delayed until its source registers can be read within `Constants.window` cycles.
    """
    table, part, at, time = fn.args
    room = Room(fn, table)
    late = fn.var(F64, time)
    for bank in range(BANKS):
        count = room[f"bank{bank}"][at]
        with fn.when(count > 0.0):
            banks = room["banks"] + part * BANKS
            busy = larger(fn, time, banks[bank]) + count
            banks[bank] = busy
            late.set(larger(fn, late, busy - room.get("window")))
    fn.finish(late)
