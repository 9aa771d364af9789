"""The compiled functions that handlers call (memory access, events, races) and the loops that call the handlers.

They are linked before any handler.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gemmlab.emulator import address_space as memory
from gemmlab.emulator.async_copies import COPY, LAND, emit_copy, emit_land
from gemmlab.emulator.barriers import emit_barriers
from gemmlab.emulator.cluster_races import CLUSTER_RACE, emit_cluster_race
from gemmlab.emulator.compiled import compiled
from gemmlab.emulator.copy_counts import COUNT_COPY, emit_count_past_l1, emit_count_through_l1
from gemmlab.emulator.events import NOTE, emit_lost, emit_note
from gemmlab.emulator.global_races import GLOBAL_RACE, emit_global_race
from gemmlab.emulator.loop import emit_loops
from gemmlab.emulator.memo import ANALYSE, emit_analyse
from gemmlab.emulator.memory_access import emit_access
from gemmlab.emulator.memory_counts import emit_count, emit_touch
from gemmlab.emulator.memory_lanes import emit_lane_by_lane
from gemmlab.emulator.races import emit_race
from gemmlab.emulator.silent_stores import CHANGES, DIFFERS, emit_store_changes, emit_stores_differ
from gemmlab.emulator.step_trace import TRACE_ACCESS, TRACE_STEP, emit_trace_access, emit_trace_step
from gemmlab.emulator.warp_syncs import ENDED, emit_ended
from gemmlab.emulator.wgmma import emit_wgmma
from gemmlab.ir.module import Module
from gemmlab.ir.target import Target
from gemmlab.ir.types import I32, I64, VOID

SERVICES = (
    "note",
    "analyse",
    "push",
    "arrive",
    "release_all",
    "ended",
    "global_race",
    "cluster_race",
    "copy",
    "land",
    "trace_step",
    "decode",
    "sum_floats",
    "sum_integers",
    "issue_wgmma",
    "wait_wgmma",
    "lost",
    "run_warp",
    "run_block",
    *(f"locate_{space}" for space in memory.SPACES),
    *(f"{word}_{space}" for word in ("load", "store", "count") for space in memory.SPACES),
)


@cache
def service_addresses() -> Mapping[str, int]:
    """Return the address of every service, by name."""
    return compiled("services", SERVICES, emit_services, {})


def emit_services(target: Target) -> str:
    """Return the services' LLVM IR."""
    module = Module(target)
    with module.function("note", NOTE, VOID, exported=True) as fn:
        emit_note(fn)
    with module.function("lost", TRACE_STEP, I32, exported=True) as fn:
        emit_lost(fn, module)
    with module.function("analyse", ANALYSE, VOID, exported=True) as fn:
        emit_analyse(fn)
        fn.finish()
    with module.function("store_changes", CHANGES, I32) as fn:
        emit_store_changes(fn)
    with module.function("stores_differ", DIFFERS, I32) as fn:
        emit_stores_differ(fn)
    with module.function("race", memory.ACCESS, VOID) as fn:
        emit_race(fn, module)
    with module.function("cluster_race", CLUSTER_RACE, VOID, exported=True) as fn:
        emit_cluster_race(fn, module)
    with module.function("global_race", GLOBAL_RACE, VOID, exported=True) as fn:
        emit_global_race(fn, module)
    with module.function("trace_access", TRACE_ACCESS, VOID) as fn:
        emit_trace_access(fn)
    with module.function("trace_step", TRACE_STEP, I32, exported=True) as fn:
        emit_trace_step(fn)
    emit_loops(module)
    emit_barriers(module)
    with module.function("ended", ENDED, VOID, exported=True) as fn:
        emit_ended(fn, module)
    with module.function("touch", memory.TOUCH, VOID) as fn:
        emit_touch(fn)
    for space in memory.SPACES:
        with module.function(f"locate_{space}", memory.LOCATE, I64, exported=True) as fn:
            memory.emit_locate(fn, module, space)
        with module.function(f"count_{space}", memory.COUNT, VOID, exported=True) as fn:
            emit_count(fn, module, space)
        for word in ("load", "store"):
            with module.function(f"slow_{word}_{space}", memory.ACCESS, I32) as fn:
                emit_lane_by_lane(fn, module, space, store=word == "store")
            with module.function(f"{word}_{space}", memory.ACCESS, I32, exported=True) as fn:
                emit_access(fn, module, space, store=word == "store")
    emit_wgmma(module)
    with module.function("land", LAND, VOID, exported=True) as fn:
        emit_land(fn)
    with module.function("count_past_l1", COUNT_COPY, VOID) as fn:
        emit_count_past_l1(fn)
    with module.function("count_through_l1", COUNT_COPY, VOID) as fn:
        emit_count_through_l1(fn)
    with module.function("copy", COPY, VOID, exported=True) as fn:
        emit_copy(fn, module)
    return module.text()
