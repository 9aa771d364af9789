"""A forecast of the time of every configuration, made before any is compiled. It only orders the search.

The forecast depends on a configuration's last launch: the number of blocks, the threads and shared memory of a block,
and its steps along k. They give the number r of results per thread, and the most blocks that fit on a multiprocessor
(occupancy, with registers guessed from r).

A step of a block takes as long as its multiply-adds, or as its loads from shared memory if these take longer: a thread
loads about 2 * sqrt(r) words for r multiply-adds. A block also waits for its own threads, and once per tile of BK steps
for global memory, less if STAGES tiles are under way at a time. While one block waits, others on the multiprocessor
work. Waves are summed as in docs/model.md. The error is large, so measurements correct the forecast.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gemmlab.analysis.model.kernel_study import Load, loads_of
from gemmlab.core.errors import GemmlabError
from gemmlab.core.gpu import GpuLimits, occupancy
from gemmlab.kernels.kernel import NO_MEMORY, Kernel
from gemmlab.kernels.names import without_memory
from gemmlab.ops.op import Op
from gemmlab.tuning.space import Space

_WORDS_PER_CYCLE = 32
_MOST_REGISTERS = 255
_USUAL_REGISTERS = 24
_STEP_LATENCY = 7.5
"""The least cycles of a step along k, for a block that is alone on its multiprocessor."""
_MEMORY_LATENCY = 500.0
"""Cycles of a load from global memory: between those of a hit and of a miss in the L2 cache."""
_BARRIER = 40.0
"""Cycles that the threads of a block wait for each other, once per tile along k (`Tiles.depth` steps)."""
_SPILLED = 1.5
"""The factor on the time if a thread's results do not fit into its registers."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tiles along k that a block has in shared memory, by a kernel's parameters named BK and STAGES."""

    depth: float
    """Steps along k of a tile."""
    stages: int = 1
    """Number of tiles that are loaded or used at the same time."""


@dataclass(frozen=True, slots=True)
class Multiprocessors:
    """The properties of a GPU that the forecast needs."""

    limits: GpuLimits
    count: int


def forecasts(kernel: Kernel, op: Op, problem: Any, space: Space, of: Multiprocessors) -> list[float]:
    """Return a forecast for every configuration, in cycles.

    A configuration that cannot be launched gets twice the most cycles, so that it comes last. All forecasts are 1 for a
    problem whose results have no terms, or that has no results, and for a kernel without `make_launches`.
    """
    results = sum(operand.rows * operand.cols for operand in op.operands(problem) if operand.role != "in")
    if op.dot_length(problem) < 1 or not results or kernel.make_launches is None:
        return [1.0] * len(space)
    # A record may lack parameters that were added to the kernel later.
    configs = ({**kernel.params, **space.config(place)} for place in range(len(space)))
    found = [_cycles(kernel, op, problem, config, results, of) for config in configs]
    most = max((cycles for cycles in found if math.isfinite(cycles)), default=1.0)
    return [min(cycles, 2.0 * most) for cycles in found]


def _cycles(
    kernel: Kernel, op: Op, problem: Any, config: Mapping[str, int], results: int, of: Multiprocessors
) -> float:  # fmt: skip
    try:
        load = loads_of(kernel, config, problem)[-1]
        threads, smem_bytes = block(kernel, op, problem, config)
    except (GemmlabError, IndexError):
        return math.inf
    # Without BK nothing is known of tiles: all steps count as one tile.
    tiles = Tiles(config.get("BK", load.depth), config.get("STAGES", 1))
    return block_cycles(load, threads, smem_bytes, results * op.dot_length(problem), tiles, of)


def block_cycles(
    load: Load, threads: int, smem_bytes: int, work: float, tiles: Tiles, of: Multiprocessors
) -> float:  # fmt: skip
    """Return the forecast cycles of a launch; infinite if no block fits on a multiprocessor.

    `load` has the blocks of the launch and their depth. `threads` and `smem_bytes` are those of a block, `work` the
    multiply-adds of all blocks.
    """
    depth = max(1.0, load.depth)
    # Results of a thread.
    own = max(1.0, work / (load.blocks * depth * threads))
    registers = int(own + 2 * math.sqrt(own)) + _USUAL_REGISTERS
    resident = occupancy(of.limits, min(registers, _MOST_REGISTERS), smem_bytes, threads).blocks
    if not resident:
        return math.inf
    step = threads * max(own / of.limits.fma_lanes, 2.0 * math.sqrt(own) / (4 * _WORDS_PER_CYCLE))
    if registers > _MOST_REGISTERS:
        step *= _SPILLED
    full, last = divmod(math.ceil(load.blocks / of.count), resident)
    steps = min(max(1.0, tiles.depth), depth)
    tile = steps * max(_STEP_LATENCY, step)
    alone = tile + _BARRIER + max(0.0, _MEMORY_LATENCY - (tiles.stages - 1) * tile)
    waves = full * max(alone, resident * steps * step) + (max(alone, last * steps * step) if last else 0.0)
    return depth / steps * waves + 1000.0


def block(kernel: Kernel, op: Op, problem: Any, config: Mapping[str, int]) -> tuple[int, int]:
    """Return the threads and the bytes of dynamic shared memory of a block of the last launch."""
    scalars = op.scalars(problem)
    bound: dict[str, Any] = {**scalars, "threads": 1, **NO_MEMORY}
    for operand in op.operands(problem):
        bound |= without_memory(operand.name)
    launch = kernel.launches(kernel.instantiate(config, scalars), bound)[-1]
    return math.prod(launch.threads), launch.smem_bytes
