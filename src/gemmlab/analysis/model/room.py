"""The memory of one simulated schedule: named arrays (columns), which Python fills and compiled code updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.analysis.model.constants import Constants
from gemmlab.analysis.model.script import BARRIER, COMMIT, COPIES, NONE, Line, Script
from gemmlab.core.counters import ASYNC_COPY, SHARED_KINDS, TEXTURE_LOAD
from gemmlab.ir.function import Function
from gemmlab.ir.types import F64, I64, Type
from gemmlab.ir.values import Value

PARTITIONS = 4
"""Partitions of an SM; warp `number` belongs to partition `number % PARTITIONS`."""
IN_A_LINE = 8
"""Instructions in a line of 128 bytes of code, which is fetched as a whole."""
BANKS = 2
GROUPS = 9
"""Groups of asynchronous copies that are tracked per warp, the open one last. No kernel has as many in flight."""
RELEASES = NONE + 1
SECTOR = 32
NEIGHBOURS = 8
"""Sectors beside each other that have the same latency. Latencies of L2 on the H200 differ from 512 bytes on."""
GRANULE = 2
"""Sectors that L2 fetches from memory together: 64 bytes."""
NEVER = float("inf")
UNKNOWN = -1.0
"""Arrival time of a sector or granule that no warp of the block has requested."""
PLAIN, MEET, CLOSE, AWAIT, COPY = range(5)
"""Roles of instructions: none, a block's barrier, the end of a group of copies, a wait for groups, an asynchronous
copy.
"""
_ROLES = {BARRIER: MEET, COMMIT: CLOSE, COPIES: AWAIT, ASYNC_COPY: COPY}

COLUMNS: Mapping[str, Type] = {
    # Per instruction of the code. `slots`: cycles until its partition may issue again. `waits`: a bit per dependency
    # barrier. `bank0`, `bank1`: registers read per bank.
    "slots": F64, "stall": F64, "latency": F64, "busy": F64, "bank0": F64, "bank1": F64,
    "waits": I64, "write": I64, "read": I64, "pipe": I64, "role": I64, "left": I64,
    # Sums over the executions of an instruction: their number, the cycles that warps spent at it, and of these the
    # cycles until a dependency barrier was released and until its line of code was available.
    "times": I64, "spent": F64, "held": F64, "unfetched": F64,
    # Per request. The numbers of its sectors in the script are `sector[first:last]`.
    "l1": F64, "texels": F64, "store": I64, "first": I64, "last": I64, "sector": I64,
    # Number of the granule that each sector belongs to; per granule of each block, when its first sector arrives.
    "granule": I64, "opened": F64,
    # Paths of a block's warps, concatenated. `begin`, `end`, per warp: its part of `way` (instructions) and of
    # `requests` (-1 for none).
    "way": I64, "requests": I64, "begin": I64, "end": I64,
    # Per warp of each block. `place`: its position on its path. `ready`: the time since which it could issue. `queued`:
    # 1 if it is in the queue. `issued`: the time since which it is at its present instruction.
    "place": I64, "ready": F64, "queued": I64, "issued": F64, "released": F64, "copies": F64, "groups": I64,
    # Per partition. `current`: the warp that it prefers, or -1. `came`, `used`, per line of code: arrival time and
    # number of the last use; `used` is 0 for lines that are not in the cache.
    "free": F64, "current": I64, "pipes": F64, "banks": F64, "fetched": F64, "came": F64, "used": I64, "lines": I64,
    # Per block. `living`: warps that have not ended. `waiting`: number of warps at the barrier, which `waiters` lists
    # in order of arrival. `arrival`: the time at which each sector arrives. `later`: from -1 to 1,
    # how much its latency differs from the mean.
    "living": I64, "waiting": I64, "waiters": I64, "arrival": F64, "later": F64,
    # State of the SM, then constants of the schedule.
    "l1_free": F64, "meet_free": F64, "texture_free": F64, "l2_free": F64, "finished": F64, "uses": I64, "next": F64,
    "warps": I64, "size": I64, "code_lines": I64, "pipe_count": I64, "line_count": I64, "sectors": I64, "granules": I64,
    "sector_cycles": F64, "near": F64, "far": F64, "l1_latency": F64, "operands": F64, "barrier": F64,
    "joining": F64, "start": F64, "near_spread": F64, "far_spread": F64, "queue": F64,
    "window": F64, "fetch": F64,
}  # fmt: skip
_PLACES = {name: place for place, name in enumerate(COLUMNS)}


@dataclass(frozen=True, slots=True)
class Room:
    """Access to the columns in a function that is being emitted; `table` contains their addresses."""

    fn: Function
    table: Value

    def __getitem__(self, name: str) -> Value:
        """Emit code for a pointer to the first element of the column `name`; index it to read or write an element."""
        return self.fn.cast(self.table[_PLACES[name]], COLUMNS[name])

    def get(self, name: str) -> Value:
        """Emit code that loads the value of the column `name`, which has one element."""
        return self[name][0]

    def put(self, name: str, value: Value) -> None:
        self[name][0] = value


def columns_of(
    script: Script, blocks: int, constants: Constants, l2_bytes: float, latency: float, draw: int = 0
) -> dict[str, npt.NDArray[Any]]:
    """Return every column, by name, in its state before the first instruction.

    `l2_bytes` are the bytes that an SM receives from L2 per cycle; `latency` is the cycles until a sector that misses
    L1 arrives in the mean, if it is the first one of its granule. `draw` chooses which sectors arrive sooner and later.
    """
    code, requests, ways = script.code, script.requests, script.warps
    pipes = {name: number for number, name in enumerate(dict.fromkeys(line.pipe for line in code))}
    sectors = {name: number for number, name in enumerate(dict.fromkeys(s for r in requests for s in r.sectors))}
    granules = {name: number for number, name in enumerate(dict.fromkeys(s // GRANULE for s in sectors))}
    size, lines = len(ways), -(-len(code) // IN_A_LINE)
    warps = blocks * size
    ends = np.cumsum([len(way) for way in ways])
    lasts = np.cumsum([len(request.sectors) for request in requests])
    steps = np.concatenate([np.empty((0, 2), np.int64), *ways])
    found: dict[str, Any] = {
        "slots": [1.0 + constants.returned * line.returned for line in code],
        "stall": [line.stall for line in code], "latency": [_latency(line, constants) for line in code],
        "busy": [line.busy for line in code],
        **{f"bank{bank}": [line.reads[bank] if line.reads else 0 for line in code] for bank in range(BANKS)},
        "waits": [sum(1 << barrier for barrier in line.waits) for line in code],
        "write": [line.write for line in code], "read": [line.read for line in code],
        "pipe": [pipes[line.pipe] for line in code], "role": [_ROLES.get(line.role, PLAIN) for line in code],
        "left": [line.left for line in code],
        **{name: np.zeros(len(code)) for name in ("times", "spent", "held", "unfetched")},
        "l1": [r.l1 for r in requests], "texels": [r.texels for r in requests], "store": [r.store for r in requests],
        "first": lasts - [len(r.sectors) for r in requests], "last": lasts,
        "sector": [sectors[s] for r in requests for s in r.sectors],
        "granule": [granules[s // GRANULE] for s in sectors], "opened": np.full(blocks * len(granules), UNKNOWN),
        "way": steps[:, 0], "requests": steps[:, 1], "begin": ends - [len(way) for way in ways], "end": ends,
        "place": np.full(warps, -1), "ready": np.zeros(warps), "queued": np.zeros(warps),
        "issued": np.zeros(warps),
        "released": np.zeros(warps * RELEASES), "copies": np.zeros(warps * GROUPS), "groups": np.ones(warps),
        "free": np.zeros(PARTITIONS), "current": np.full(PARTITIONS, -1),
        "pipes": np.zeros(PARTITIONS * len(pipes)), "banks": np.zeros(PARTITIONS * BANKS),
        "fetched": np.zeros(PARTITIONS), "came": np.zeros(PARTITIONS * lines), "used": np.zeros(PARTITIONS * lines),
        "lines": np.zeros(PARTITIONS), "living": np.full(blocks, size), "waiting": np.zeros(blocks),
        "waiters": np.zeros(warps), "arrival": np.full(blocks * len(sectors), UNKNOWN),
        "later": _later(list(sectors), blocks, draw),
        "next": np.zeros(PARTITIONS),
        "warps": warps, "size": size, "code_lines": constants.code_lines, "pipe_count": len(pipes),
        "line_count": lines, "sectors": len(sectors), "granules": len(granules),
        "sector_cycles": SECTOR / l2_bytes, "near": constants.l2, "far": latency,
        "l1_latency": constants.l1, "operands": constants.operands, "barrier": constants.barrier,
        "joining": constants.arrival, "start": constants.start, "near_spread": constants.l2_spread,
        "far_spread": constants.l2_spread if latency == constants.l2 else constants.memory_spread,
        "queue": constants.queue, "window": constants.window, "fetch": constants.fetch,
    }  # fmt: skip
    return {
        name: np.ascontiguousarray(found.get(name, 0), np.float64 if type_ == F64 else np.int64).reshape(-1)
        for name, type_ in COLUMNS.items()
    }


def table_of(columns: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
    """Return the addresses of the arrays named in `COLUMNS`, in that order. The arrays must outlive the table."""
    return np.array([columns[name].ctypes.data for name in COLUMNS], np.int64)


def _latency(line: Line, constants: Constants) -> float:
    """Return the part of an instruction's latency that does not depend on L1 and L2, in cycles.

    It is all of it for shared memory and for opcodes that access no memory, the texture units' part for textures, and 0
    for other accesses and for barriers.
    """
    if line.role in SHARED_KINDS and line.role != ASYNC_COPY:
        return constants.shared
    if line.role == TEXTURE_LOAD:
        return constants.texture
    return 0.0 if line.role else constants.special


def _later(sectors: Sequence[int], blocks: int, draw: int) -> npt.NDArray[np.float64]:
    """Return, for each sector of each block, a number from -1 to 1 that looks random and depends on the place alone."""
    places = np.array([sector // NEIGHBOURS for sector in sectors], np.uint64)
    rows = np.arange(draw * blocks + 1, (draw + 1) * blocks + 1, dtype=np.uint64)[:, None]
    mixed = (places + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) ^ rows * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed = (mixed ^ mixed >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
    bits: npt.NDArray[np.uint64] = (mixed ^ mixed >> np.uint64(32)) & np.uint64(0xFFFF)
    return np.asarray(bits / 0x8000 - 1, np.float64).reshape(-1)
