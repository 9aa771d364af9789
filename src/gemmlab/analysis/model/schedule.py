"""Simulation of the warps of one SM: the cycles that a number of resident blocks take to execute their script.

Each of the four partitions issues one instruction a cycle; loads reduce this rate, because their results take issue
slots when they are written to registers. A partition issues from the same warp as before while it is ready, else from
the warp that has been ready longest. A warp is ready if the stall of its last instruction is over, the dependency
barriers that it waits for are released, and its line of code is in the instruction cache. Shared units serve requests
in the order of issue: the pipes and the two register banks of a partition, L1 with shared memory, and the SM's link to
L2. A sector that a warp of the same block has already requested is not requested again; all warps that need it wait for
its first arrival.

The simulation is compiled, because a block issues tens of thousands of instructions and a prediction needs several
schedules.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.analysis.model.constants import Constants
from gemmlab.analysis.model.partition import TABLE, emit_partition
from gemmlab.analysis.model.room import NEVER, PARTITIONS, Room, columns_of, table_of
from gemmlab.analysis.model.script import Script
from gemmlab.analysis.model.warp_turn import emit_warp
from gemmlab.core.sources import Sources
from gemmlab.emulator.compiled import compiled
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.target import Target
from gemmlab.ir.types import F64, I64
from gemmlab.ir.values import Value

_SOURCES = Sources(Path(__file__).parent / f"{name}.py" for name in ("schedule", "warp_turn", "partition", "room"))


@dataclass(frozen=True, slots=True)
class InstructionTimes:
    """Simulated times of each instruction of the code, summed over all warps. Element i belongs to instruction i.

    A warp is at an instruction from the issue of the one before to the issue of this one, and at a barrier until it is
    released. A profiler's samples count in the same way.
    """

    executions: npt.NDArray[np.int64] = field(repr=False)
    """Number of executions by warps."""
    cycles: npt.NDArray[np.float64] = field(repr=False)
    """Cycles for which warps were at the instruction."""
    dependency: npt.NDArray[np.float64] = field(repr=False)
    """The part of `cycles` after the stall of the instruction before, until the last dependency barrier was released
    and the copies that the instruction waits for had arrived.
    """
    fetch: npt.NDArray[np.float64] = field(repr=False)
    """The part of `cycles` after `dependency`, until the instruction's code was in the cache."""


def block_cycles(
    script: Script, blocks: int, constants: Constants, l2_bytes: float, latency: float, draw: int = 0
) -> float:
    """Return the cycles until the last of `blocks` blocks that start together has ended.

    `l2_bytes` are the bytes that an SM receives from L2 per cycle. `latency` is the number of cycles until a sector
    that misses L1 begins to arrive, in the mean; `draw` chooses which sectors arrive sooner and later.
    """
    return _run(columns_of(script, blocks, constants, l2_bytes, latency, draw))


def instruction_times(
    script: Script, blocks: int, constants: Constants, l2_bytes: float, latency: float
) -> InstructionTimes:
    """Return the times of each instruction in the schedule that `block_cycles` simulates for the same arguments."""
    columns = columns_of(script, blocks, constants, l2_bytes, latency)
    _run(columns)
    return InstructionTimes(columns["times"], columns["spent"], columns["held"], columns["unfetched"])


def _run(columns: Mapping[str, npt.NDArray[Any]]) -> float:
    table = table_of(columns)
    return _runner()(table.ctypes.data)


@cache
def _runner() -> Callable[[int], float]:
    address = compiled("model", ("schedule",), _emit, {}, _SOURCES)["schedule"]
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)(address)


def _emit(target: Target) -> str:
    module = Module(target)
    emit_partition(module)
    emit_warp(module)
    with module.function("schedule", [TABLE], F64, exported=True) as fn:
        _emit_schedule(fn, module)
    return module.text()


def _emit_schedule(fn: Function, module: Module) -> None:
    """Emit `schedule(table)`: run all warps from first to last instruction; return the time at which the last ends."""
    (table,) = fn.args
    room = Room(fn, table)
    with fn.range(room.get("warps")) as number:
        begins = fn.emit(F64, f"sitofp i64 {number.name} to double") * room.get("start")
        fn.call(module["go_on"], table, number, begins, 0)
    _look(fn, module, table)
    with fn.loop() as done:
        time, part = fn.var(F64, NEVER), fn.var(I64, 0)
        time.set(NEVER)
        with fn.range(PARTITIONS) as each:
            first = room["next"][each]
            with fn.when(first < time):
                time.set(first)
                part.set(each)
        fn.leave_if(done, time.read().equals(NEVER))
        number = fn.call(module["take"], table, part, time)
        freed = fn.call(module["turn"], table, number, time)
        with fn.choose(freed.differs(0)) as choice:
            with choice.yes():
                _look(fn, module, table)
            with choice.no():
                room["next"][part] = fn.call(module["following"], table, part)
    fn.finish(room.get("finished"))


def _look(fn: Function, module: Module, table: Value) -> None:
    """Emit code that stores the earliest time at which each partition can issue in the column `next`."""
    with fn.range(PARTITIONS) as part:
        Room(fn, table)["next"][part] = fn.call(module["following"], table, part)
