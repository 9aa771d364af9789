"""Runs a decoded kernel over a grid: one resident block after another, more of them only where one waits for another.

Blocks run in the order of their numbers. A block that spins without anything changing lets the next one start; that it
had to is a hazard, because a GPU need not have both resident. When no block that could start is left, it is a deadlock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.trace import TraceRequest
from gemmlab.emulator.decode import Code
from gemmlab.emulator.layout import FULL, LANES, ROW, Block, Event, Insn, Launch, Pending, Status, Warp
from gemmlab.emulator.loop import TURN
from gemmlab.emulator.memory_map import MemoryMap
from gemmlab.emulator.races import ELEMENT
from gemmlab.emulator.recorded import Recorder, recorder
from gemmlab.emulator.services import service_addresses

Bytes = npt.NDArray[np.uint8]
EVENTS = 4096


@dataclass(frozen=True, slots=True)
class Geometry:
    """What a launch asks for, and the kernel's own needs."""

    grid: tuple[int, int, int]
    threads: tuple[int, int, int]
    shared_low: int
    """First valid shared address (what lies below is the system's)."""
    shared_bytes: int
    registers: int
    local_bytes: int
    constants: dict[int, Bytes] = field(repr=False)
    """Constant banks by number; bank 0 holds the arguments."""
    check_races: bool = False
    byte_races: bool = False
    """Whether the kernel accesses shared memory by less than 4 bytes."""
    wave_blocks: int = 1
    """Blocks that a GPU would have resident together: what is counted as distinct is so within such a wave."""
    async_copies: bool = False
    """Whether warps need room for copies under way."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened: counters by instruction (in `records`), events, and why the launch stopped, if it did."""

    records: Bytes = field(repr=False)
    events: npt.NDArray[np.int64] = field(repr=False)
    stopped: str = ""
    """`"deadlock"`, `"trap"` or empty."""
    stuck: tuple[tuple[int, int, int], ...] = ()
    """(block, warp, instruction) of those that cannot go on."""
    awaited: tuple[tuple[int, int, int], ...] = ()
    """(block, warp, instruction) of those that waited for a block that was not resident."""
    recorded: Recorder | None = None
    """Where a trace was asked for."""


@cache
def _runner() -> Callable[[int, int], int]:
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)
    return prototype(service_addresses()["run_block"])


class _TrapError(Exception):
    """A thread stopped the launch; its event says which."""


class _Resident:
    """One block's state: a `Block`, its warps, shared memory and local memory."""

    def __init__(self, geometry: Geometry, launch_address: int) -> None:
        x, y, z = geometry.threads
        self.threads = x * y * z
        self.count = -(-self.threads // LANES)
        self.size = Warp.size(geometry.registers)
        self.geometry = geometry
        self.warps = np.zeros((self.count, self.size), np.uint8)
        self.shared = np.zeros(geometry.shared_low + geometry.shared_bytes + 64, np.uint8)
        self.valid = np.zeros_like(self.shared)
        local = self.count * LANES * geometry.local_bytes
        self.local, self.local_valid = np.zeros(local, np.uint8), np.zeros(local, np.uint8)
        self.pending = np.zeros((self.count if geometry.async_copies else 0, Pending.SIZE), np.uint8)
        self.block = np.zeros(Block.SIZE, np.uint8)
        self.clocks = np.zeros((LANES, LANES), np.int32)
        self.shadow = self._shadow() if geometry.check_races else np.zeros(0, np.uint8)
        self._template = self._warp_template(launch_address)
        self._put(Block.LAUNCH, launch_address)

    def _shadow(self) -> Bytes:
        elements = self.geometry.shared_bytes if self.geometry.byte_races else -(-self.geometry.shared_bytes // 4)
        return np.zeros((elements + 4) * ELEMENT, np.uint8)

    def _put(self, offset: int, value: int) -> None:
        self.block[offset : offset + 8].view(np.int64)[0] = value

    def _warp_template(self, launch_address: int) -> Bytes:
        head = np.zeros((self.count, Warp.REGISTERS), np.uint8)
        x, y, _z = self.geometry.threads
        numbers = np.arange(self.count * LANES, dtype=np.int32).reshape(self.count, LANES)
        alive = numbers < self.threads
        masks = (alive << np.arange(LANES, dtype=np.uint64)).sum(1).astype(np.uint32)
        words = head.view(np.uint32)
        wide = head.view(np.int64)
        words[:, Warp.ACTIVE // 4] = masks
        words[:, Warp.EXITED // 4] = ~masks
        wide[:, Warp.BLOCK // 8] = self.block.ctypes.data
        wide[:, Warp.LAUNCH // 8] = launch_address
        wide[:, Warp.INDEX // 8] = np.arange(self.count)
        wide[:, Warp.LOCAL_BYTES // 8] = self.geometry.local_bytes
        stride = LANES * self.geometry.local_bytes
        wide[:, Warp.LOCAL // 8] = self.local.ctypes.data + np.arange(self.count) * stride
        wide[:, Warp.LOCAL_VALID // 8] = self.local_valid.ctypes.data + np.arange(self.count) * stride
        if self.pending.size:
            wide[:, Warp.PENDING // 8] = self.pending.ctypes.data + np.arange(self.count) * Pending.SIZE
        for base in (Warp.PREDICATES, Warp.UNIFORM_PREDICATES):
            words[:, base // 4 + 7] = FULL
        for part, values in enumerate((numbers % x, numbers // x % y, numbers // (x * y))):
            start = (Warp.TID + part * ROW) // 4
            words[:, start : start + LANES] = values.astype(np.uint32)
        words[:, Warp.LANE // 4 : Warp.LANE // 4 + LANES] = np.arange(LANES, dtype=np.uint32)
        return head

    def begin(self, linear: int) -> None:
        """Become the block of that number, nothing executed."""
        syncs = self.warps[:, Warp.SYNCS : Warp.SYNCS + 8].copy()
        self.warps[:, : Warp.REGISTERS] = self._template
        self.warps[:, Warp.SYNCS : Warp.SYNCS + 8].view(np.int64)[:] = syncs.view(np.int64) + 1
        self.valid[:] = 0
        self.local_valid[:] = 0
        self.pending[:, : Pending.ENTRY] = 0
        self.block[Block.BARRIER :] = 0
        # Clocks only grow, so that what an earlier block left in the shadow is before everything this one does.
        base = int(self.clocks.max())
        self.clocks[:] = base
        np.fill_diagonal(self.clocks, base + 1)
        gx, gy, _gz = self.geometry.grid
        position = np.array([linear % gx, linear // gx % gy, linear // (gx * gy)], np.int32)
        self.block[Block.CTAID : Block.CTAID + 12].view(np.int32)[:] = position
        for offset, value in (
            (Block.LINEAR, linear),
            (Block.WAVE, linear // self.geometry.wave_blocks % 255 + 1),
            (Block.WARPS, self.warps.ctypes.data),
            (Block.WARP_COUNT, self.count),
            (Block.WARP_SIZE, self.size),
            (Block.SHARED, self.shared.ctypes.data),
            (Block.VALID, self.valid.ctypes.data),
            (Block.SHARED_LOW, self.geometry.shared_low),
            (Block.SHARED_HIGH, self.geometry.shared_low + self.geometry.shared_bytes),
            (Block.LIVE, self.threads),
            (Block.THREADS, self.threads),
            (Block.RACES, self.shadow.ctypes.data if self.shadow.size else 0),
            (Block.RACE_SHIFT, 0 if self.geometry.byte_races else 2),
            (Block.CLOCKS, self.clocks.ctypes.data),
        ):
            self._put(offset, value)

    @property
    def linear(self) -> int:
        return int(self.block[Block.LINEAR : Block.LINEAR + 8].view(np.int64)[0])

    @property
    def epoch(self) -> int:
        return int(self.block[Block.EPOCH : Block.EPOCH + 8].view(np.int64)[0])

    def run(self, turn: int = TURN) -> int:
        """Until the block has ended or cannot go on by itself; a `Status`."""
        return _runner()(self.block.ctypes.data, turn)

    def places(self) -> tuple[tuple[int, int, int], ...]:
        """(block, warp, instruction) of each warp that has not ended."""
        found = []
        for index in range(self.count):
            warp = self.warps[index]
            if warp[Warp.STATE : Warp.STATE + 4].view(np.int32)[0] != Status.DONE:
                groups = int(warp[Warp.GROUPS : Warp.GROUPS + 8].view(np.int64)[0])
                running = int(warp[Warp.ACTIVE : Warp.ACTIVE + 4].view(np.uint32)[0])
                waits = groups and not running
                start = Warp.GROUP if waits else Warp.PC
                # A group that waits has the instruction after the one it waits at.
                place = int(warp[start : start + 8].view(np.int64)[0]) - bool(waits)
                found.append((self.linear, index, place))
        return tuple(found)

    def state(self) -> bytes:
        """Everything a warp's future depends on, for finding out that it runs in circles."""
        live = self.warps.copy()
        live[:, Warp.CLOCK : Warp.CLOCK + 8] = 0
        live[:, Warp.SYNCS : Warp.SYNCS + 8] = 0
        return live.tobytes()


def run(
    code: Code, geometry: Geometry, memory: MemoryMap, *, resident_limit: int, trace: TraceRequest | None = None
) -> Outcome:
    """Execute a grid. At most `resident_limit` blocks are ever resident together."""
    records = code.records.copy()
    events = np.zeros((EVENTS, Event.SIZE // 8), np.int64)
    launch = _launch_structure(code, records, events, geometry, memory)
    memory.forget_touches()
    blocks = geometry.grid[0] * geometry.grid[1] * geometry.grid[2]
    recorded = _record(trace, blocks, records, launch) if trace is not None else None
    awaited: list[tuple[int, int, int]] = []
    spare: list[_Resident] = []
    waiting: list[_Resident] = []
    stopped, following = "", 0
    stuck: tuple[tuple[int, int, int], ...] = ()
    try:
        while following < blocks or waiting:
            progressed = False
            for resident in list(waiting):
                before = resident.epoch
                status = _settled(resident)
                progressed |= status == Status.DONE or resident.epoch != before
                if status == Status.DONE:
                    waiting.remove(resident)
                    spare.append(resident)
            if progressed:
                continue
            if waiting and (following >= blocks or len(waiting) >= resident_limit or _blocked(waiting)):
                stopped, stuck = "deadlock", tuple(place for resident in waiting for place in resident.places())
                break
            for resident in waiting:
                awaited.extend(place for place in resident.places() if place not in awaited)
            following = _run_through(following, blocks, spare, waiting, lambda: _Resident(geometry, launch.ctypes.data))
    except _TrapError:
        stopped = "trap"
    count = int(launch[Launch.EVENT_COUNT : Launch.EVENT_COUNT + 8].view(np.int64)[0])
    return Outcome(records, events[:count].copy(), stopped, stuck, tuple(awaited), recorded)


def _record(trace: TraceRequest, blocks: int, records: Bytes, launch: Bytes) -> Recorder:
    """Make room for a trace and have it recorded."""
    handlers = records[:, Insn.HANDLER : Insn.HANDLER + 8].copy().view(np.int64)[:, 0]
    made = recorder(trace, blocks, handlers)
    launch[Launch.TRACE : Launch.TRACE + 8].view(np.int64)[0] = made.address
    if trace.blocks:
        step = np.array([service_addresses()["trace_step"]], np.int64)
        records[:, Insn.HANDLER : Insn.HANDLER + 8] = step.view(np.uint8)
    return made


def _run_through(
    following: int, blocks: int, spare: list[_Resident], waiting: list[_Resident], make: Callable[[], _Resident]
) -> int:
    """Run blocks one after another until one cannot end by itself; the number of the next."""
    alone = not waiting
    while following < blocks:
        resident = spare.pop() if spare else make()
        resident.begin(following)
        following += 1
        if _settled(resident) == Status.DONE:
            spare.append(resident)
            if alone:
                continue
        else:
            waiting.append(resident)
        break
    return following


def _settled(resident: _Resident) -> int:
    """Run a block until it ends or is certain to need another one: blocked, or going round in circles."""
    seen: set[bytes] = set()
    turn = TURN
    while True:
        epoch = resident.epoch
        status = resident.run(turn)
        if status == Status.FAULT:
            raise _TrapError
        if status == Status.PAUSED:
            continue
        if status != Status.SPENT:
            return status
        if resident.epoch != epoch:
            seen.clear()
            continue
        # Nothing changed in a round. Step in small turns of a prime length: equal states mean an endless loop.
        state = resident.state()
        if state in seen:
            return Status.SPENT
        seen.add(state)
        turn = 997 if len(seen) < 64 else TURN
        if len(seen) > 256:
            seen.clear()


def _blocked(waiting: list[_Resident]) -> bool:
    """Whether every waiting block is held by its own barriers, so that no other block can help."""
    return all(resident.run(1) == Status.BLOCKED for resident in waiting)


def _launch_structure(
    code: Code, records: Bytes, events: npt.NDArray[np.int64], geometry: Geometry, memory: MemoryMap
) -> Bytes:
    launch = np.zeros(Launch.SIZE, np.uint8)

    def put(offset: int, value: int, type_: Any = np.int64) -> None:
        launch[offset : offset + np.dtype(type_).itemsize].view(type_)[0] = value

    put(Launch.SLOTS, memory.slots.ctypes.data)
    put(Launch.TEXTURES, memory.textures.table.ctypes.data)
    for bank, data in geometry.constants.items():
        put(Launch.CONSTANT + 8 * bank, data.ctypes.data)
        put(Launch.CONSTANT_SIZE + 8 * bank, data.nbytes)
    put(Launch.EVENTS, events.ctypes.data)
    put(Launch.EVENT_CAPACITY, EVENTS)
    put(Launch.CODE, records.ctypes.data)
    put(Launch.CODE_COUNT, len(code.instructions))
    for part, value in enumerate((*geometry.grid, *geometry.threads)):
        put(Launch.GRID + 4 * part, value, np.int32)
    return launch
