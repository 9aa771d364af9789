"""Execution of a decoded kernel over a grid, one resident block after another.

Blocks run in the order of their numbers. If a block waits and nothing changes, the next one becomes resident as well;
that is reported as a hazard, because a GPU need not have both resident. In a cooperative launch all are resident, and
the polls that a block repeats while it waits are not counted (`polls`). The launch is deadlocked if there is no further
block, if no more can be resident, or if every resident block is blocked at barriers of its own. A block that provably
never ends, or executes too many instructions, stops the launch (`endless_loops`), and so does a time limit.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.hazard import CLUSTER
from gemmlab.core.time_limit import TimeLimit
from gemmlab.core.trace import TraceRequest
from gemmlab.emulator.asynchronous.absent_arrivals import ArrivalCode
from gemmlab.emulator.asynchronous.engine import Engine
from gemmlab.emulator.asynchronous.finding import Finding
from gemmlab.emulator.decode import Code
from gemmlab.emulator.endless_loops import StoppedError, Watch, patience, settled
from gemmlab.emulator.geometry import Bytes, Geometry
from gemmlab.emulator.global_races import Shadows, shadows
from gemmlab.emulator.instruction_layout import Event, Insn
from gemmlab.emulator.launch_layout import PARAMETERS, Launch
from gemmlab.emulator.layout import Status
from gemmlab.emulator.memory_map import MemoryMap, Reach
from gemmlab.emulator.polls import Polls
from gemmlab.emulator.services import service_addresses
from gemmlab.emulator.trace_buffers import Recorder, recorder
from gemmlab.emulator.units import Unit, members, unit

EVENTS = 4096


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run: instruction records with counters, events, and the reason for an early stop, if any."""

    records: Bytes = field(repr=False)
    events: npt.NDArray[np.int64] = field(repr=False)
    reach: Reach = field(repr=False)
    """The memory that the launch could access."""
    stopped: str = ""
    """Reason why the launch ended early: `"deadlock"`, `"endless loop"`, `"unfinished"` (too many instructions),
    `"time limit"`, `"trap"` (any `Status.FAULT`) or `"cluster"` (partial clusters); empty if it ran to its end."""
    blocked: tuple[tuple[int, int, int], ...] = ()
    """(block, warp, instruction) of each warp that has not ended: in a deadlock those of all waiting blocks, for an
    endless loop or too many instructions those of the block or cluster that was stopped. One (0, 0, 0) for `"cluster"`;
    empty in all other cases."""
    awaited: tuple[tuple[int, int, int], ...] = ()
    """(block, warp, instruction) of the warps that waited for a block that was not resident."""
    unmet: tuple[tuple[int, int, int, int], ...] = ()
    """(block, thread, instruction, lanes) of each warp-level synchronisation in a deadlock; it waits for `lanes`."""
    recorded: Recorder | None = None
    """The recorded trace; `None` if none was requested."""
    finished: int = 0
    """Blocks that ran to their end."""
    instructions: int = 0
    """Instructions executed by all warps."""
    findings: tuple[Finding, ...] = ()
    """Errors in the use of asynchronous operations."""
    printed: str = ""
    """The text that the kernel printed with `printf`; only the last 2^20 characters of it."""
    polls: int = 0
    """Repeated polls of a cooperative launch, which no count includes."""


def run(
    code: Code, geometry: Geometry, memory: MemoryMap, *, resident_limit: int, trace: TraceRequest | None = None,
    limit: TimeLimit | None = None,
) -> Outcome:  # fmt: skip
    """Execute a grid, and return its outcome. No block or cluster is added once `resident_limit` blocks are resident.

    A launch that cannot go on, or that lasts longer than `limit` (`None`: no limit), ends early: `Outcome.stopped` has
    the reason. Raises `UsageError` as `patience` does, and the exception, if any, that occurred in the engine.

    Of shared data, the function writes only the bytes of `memory`, so several threads may run grids at once.
    """
    everything = code.records.copy()
    records = everything[:-1]
    events = np.zeros((EVENTS, Event.SIZE // 8), np.int64)
    if geometry.filling is not None:
        memory.fill_unwritten(geometry.filling)
    reach = _reach(geometry, memory)
    launch = launch_structure(code, everything, events, geometry, reach)
    # The launch structure has only the addresses of the shadows; this variable keeps the arrays until the end.
    looked_for = _look_for_races(launch, geometry, reach) if geometry.global_races else None  # noqa: F841
    together = math.prod(geometry.cluster)
    engine = Engine(reach, launch, events) if geometry.asynchronous or together > 1 else None
    launch[Launch.ASYNC : Launch.ASYNC + 8].view(np.int64)[0] = engine.address if engine is not None else 0
    blocks = math.prod(geometry.grid)
    units = blocks // together
    recorded = _record(trace, blocks, records, launch) if trace is not None else None
    if engine is not None:
        engine.recorder = recorded
    awaited: dict[tuple[int, int, int], None] = {}
    spare: list[Unit] = []
    waiting: list[Unit] = []
    watch = Watch(code, records, patience(reach, blocks), limit)
    polls = Polls(code, records) if geometry.cooperative else None
    stopped, following = "", 0
    blocked: tuple[tuple[int, int, int], ...] = ()
    unmet: tuple[tuple[int, int, int, int], ...] = ()
    with _stopped_at(limit, launch):
        try:
            _require_whole_clusters(geometry)
            while following < units or waiting:
                progressed = False
                for resident in list(waiting):
                    before = resident.epoch
                    status = _settled(resident, watch, polls)
                    progressed |= status == Status.DONE or resident.epoch != before
                    if status == Status.DONE:
                        watch.finished += together
                        waiting.remove(resident)
                        spare.append(resident)
                if progressed:
                    continue
                if waiting and (following >= units or len(waiting) * together >= resident_limit or _blocked(waiting)):
                    stopped, blocked = "deadlock", tuple(place for resident in waiting for place in resident.places())
                    unmet = tuple(each for resident in waiting for each in resident.unmet())
                    if engine is not None:
                        engine.report_hang(members(waiting), _arrivals(code, records))
                    break
                for resident in waiting:
                    awaited |= dict.fromkeys(resident.places())
                following = _run_through(
                    following, units, spare, waiting, watch, lambda: unit(geometry, launch.ctypes.data, engine), polls
                )
        except StoppedError as stop:
            stopped, blocked = stop.why, stop.places
    count = int(launch[Launch.EVENT_COUNT : Launch.EVENT_COUNT + 8].view(np.int64)[0])
    return Outcome(
        records, events[:count].copy(), reach, stopped, blocked, tuple(awaited), unmet, recorded, watch.finished,
        watch.instructions, engine.findings.all if engine is not None else (),
        engine.printed if engine is not None else "", polls.repeated if polls is not None else 0,
    )  # fmt: skip


def _reach(geometry: Geometry, memory: MemoryMap) -> Reach:
    """Return the memory of the launch, with a copy of its parameters if the kernel takes their address."""
    if not geometry.parameters:
        return memory.reach()
    bank = geometry.constants[0]
    reach = memory.reach(bank[: geometry.parameters])
    bank[PARAMETERS : PARAMETERS + 8].view(np.uint64)[0] = reach.parameters + geometry.param_base
    return reach


@contextmanager
def _stopped_at(limit: TimeLimit | None, launch: Bytes) -> Iterator[None]:
    """Set the launch's stop flag when `limit` passes; compiled code checks it before each turn of a warp.

    The order of execution does not depend on the time before that.
    """
    if limit is None:
        yield
        return

    def stop() -> None:
        launch[Launch.STOP] = 1

    timer = threading.Timer(min(limit.left, threading.TIMEOUT_MAX), stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _look_for_races(launch: Bytes, geometry: Geometry, reach: Reach) -> Shadows:
    made = shadows(reach, geometry.global_shift)
    words = launch.view(np.int64)
    words[Launch.RACES // 8] = made.table.ctypes.data
    words[Launch.PUBLISHED // 8] = made.releases.ctypes.data
    words[Launch.RACE_SHIFT // 8] = geometry.global_shift
    return made


def _require_whole_clusters(geometry: Geometry) -> None:
    """Raise `StoppedError` for a grid of partial clusters, which a GPU refuses."""
    if any(extent % size for extent, size in zip(geometry.grid, geometry.cluster, strict=True)):
        raise StoppedError(CLUSTER, ((0, 0, 0),))


def _record(trace: TraceRequest, blocks: int, records: Bytes, launch: Bytes) -> Recorder:
    """Return new trace buffers, and switch recording on in the launch structure and the instruction records."""
    handlers = records[:, Insn.HANDLER : Insn.HANDLER + 8].copy().view(np.int64)[:, 0]
    made = recorder(trace, blocks, handlers)
    launch[Launch.TRACE : Launch.TRACE + 8].view(np.int64)[0] = made.address
    if trace.blocks:
        step = np.array([service_addresses()["trace_step"]], np.int64)
        records[:, Insn.HANDLER : Insn.HANDLER + 8] = step.view(np.uint8)
    return made


def _settled(resident: Unit, watch: Watch, polls: Polls | None, *, anew: bool = False) -> int:
    """Run a unit as `settled` does, without counting the polls that it repeats if there are `polls`."""
    if polls is not None:
        polls.begin(resident, anew=anew)
    status = settled(resident, watch)
    if polls is not None and status == Status.SPENT:
        polls.forget(resident)
    return status


def _run_through(
    following: int, units: int, spare: list[Unit], waiting: list[Unit], watch: Watch, make: Callable[[], Unit],
    polls: Polls | None,
) -> int:  # fmt: skip
    """Run units (blocks, or clusters) from number `following` to `units` - 1; return the number of the first not run.

    In a cooperative launch, which has `polls`, all run, each until it has to wait. Else, if `waiting` is empty, they
    run one after another until one has to wait for another; if some wait already, only one unit runs. A unit that has
    to wait is added to `waiting`.
    """
    alone = not waiting
    while following < units:
        watch.require_time()
        resident = spare.pop() if spare else make()
        resident.begin(following)
        following += 1
        done = _settled(resident, watch, polls, anew=True) == Status.DONE
        if done:
            watch.finished += len(resident.blocks)
            spare.append(resident)
        else:
            waiting.append(resident)
            watch.waits(resident)
        if polls is None and not (done and alone):
            break
    return following


def _arrivals(code: Code, records: Bytes) -> ArrivalCode:
    """Return the kernel's instructions with how often each was executed, to find its arrivals at mbarriers."""
    executed = records[:, Insn.EXECUTED : Insn.EXECUTED + 8].copy().view(np.int64)[:, 0]
    return ArrivalCode(code.instructions, executed.tolist())


def _blocked(waiting: list[Unit]) -> bool:
    """Return whether every unit in `waiting` is blocked at barriers of its own, which no other unit can release.

    To find this out, it runs the units one after another, in turns of one instruction, up to the first that is not.
    """
    return all(resident.run(1) == Status.BLOCKED for resident in waiting)


def launch_structure(
    code: Code, records: Bytes, events: npt.NDArray[np.int64], geometry: Geometry, reach: Reach
) -> Bytes:
    """Return the `Launch` structure, without the addresses of race shadows, trace and engine, which `run` adds.

    It has addresses of the arguments' arrays, which must exist as long as it does.
    """
    launch = np.zeros(Launch.SIZE, np.uint8)

    def put(offset: int, value: int, type_: Any = np.int64) -> None:
        launch[offset : offset + np.dtype(type_).itemsize].view(type_)[0] = value

    put(Launch.SLOTS, reach.slots.ctypes.data)
    put(Launch.TEXTURES, reach.textures.ctypes.data)
    for bank, data in geometry.constants.items():
        put(Launch.CONSTANT + 8 * bank, data.ctypes.data)
        put(Launch.CONSTANT_SIZE + 8 * bank, data.nbytes)
    put(Launch.TIME, 1)
    put(Launch.OLD_TENSOR_CORE, int(geometry.old_tensor_core))
    put(Launch.CONSTANT_USED, geometry.constant_bytes)
    put(Launch.EVENTS, events.ctypes.data)
    put(Launch.EVENT_CAPACITY, EVENTS)
    put(Launch.CODE, records.ctypes.data)
    put(Launch.CODE_COUNT, len(code.instructions))
    for part, value in enumerate((*geometry.grid, *geometry.threads)):
        put(Launch.GRID + 4 * part, value, np.int32)
    return launch
