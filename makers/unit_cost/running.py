"""Run all experiments. On the emulator everything runs, but only shortly, and clocks mean nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import GemmlabError
from gemmlab.core.program import Launch
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp
from unit_cost import latencies, launching, mixes, rungs
from unit_cost.machine import Row, Runner, spread
from unit_cost.measuring import run_behind, run_loaded, run_loop

MOST_STAMPING = 1056
"""Blocks that store clocks around their barriers: eight for each SM of an H200."""
KEPT_SMS = 4
"""SMs whose clocks around barriers are kept."""


def run_rung(runner: Runner, rung: rungs.Rung, size: int) -> tuple[Row, dict[str, npt.NDArray[Any]]]:
    """Return the times of a rung with cold caches, and of the last run the SM, nanoseconds, start, first and last end
    of each block, and the clocks around barriers of some blocks.
    """
    op, problem = GemmOp(), rungs.problem_of(size)
    kernel = find_kernel(rung.kernel)
    placed = place(kernel, runner.device, rung.config)
    artifact = runner.loaded(rung.label)
    placed.loaded[tuple(sorted(kernel.instantiate(placed.config, op.scalars(problem)).items()))] = artifact
    buffers = runner.operands(size)
    (launch,) = placed.bind(op, problem, buffers).launches
    blocks, warps = int(np.prod(launch.grid)), -(-int(np.prod(launch.threads)) // 32)
    stamping = min(blocks, MOST_STAMPING) if rung.steps else 0
    when, records = runner.out(mixes.RECORD * blocks * warps, np.uint64)
    steps, clocks = runner.out(max(1, stamping * warps * rungs.STEPS), np.uint32)
    stamped = Launch((*launch.args, when, steps, np.int32(stamping)), launch.grid, launch.threads, launch.smem_bytes)
    us = runner.times(rung.label, stamped, runner.extent.repeats)
    records = runner.fetch(when, records).reshape(blocks, warps, mixes.RECORD)
    clocks = runner.fetch(steps, clocks)
    start, end = records[:, :, 0].min(axis=1), records[:, :, 1]
    arrays = {"sm": records[:, 0, 2].astype(np.uint8), "ns": records[:, :, 3].min(axis=1), "start": start,
              "first_end": end.min(axis=1), "last_end": end.max(axis=1)}  # fmt: skip
    if rung.steps:
        kept = np.flatnonzero(arrays["sm"][:stamping] < KEPT_SMS)
        arrays |= {"stamping": kept, "steps": clocks.reshape(stamping, warps, rungs.STEPS)[kept]}
    row = {
        "label": rung.label, "kernel": rung.kernel, "config": dict(rung.config), "size": size, "us": us,
        "blocks": blocks, "warps": warps, "registers": artifact.artifact.resources["registers"],
        "cycles_of_block": spread(arrays["last_end"] - start),
    }  # fmt: skip
    return row, arrays


def everything(runner: Runner, seconds: float, say: Callable[[str], None]) -> tuple[Row, dict[str, npt.NDArray[Any]]]:
    """Run all experiments; a failed one leaves its error. After `seconds` none is begun."""
    end = time.monotonic() + seconds
    found: Row = {"launches": [], "reads": [], "behind": [], "loaded": [], "rungs": [], "loops": []}
    arrays: dict[str, npt.NDArray[Any]] = {}

    def tried(part: str, label: str, work: Callable[[], Row]) -> None:
        if time.monotonic() > end:
            found[part].append({"label": label, "error": "no time was left"})
            return
        try:
            found[part].append(work())
        except (GemmlabError, ArithmeticError, LookupError, MemoryError, ValueError) as error:
            found[part].append({"label": label, "error": str(error)[:300]})
            say(f"{label}: {error}")

    def loaded(case: latencies.Loaded) -> Row:
        row, latency = run_loaded(runner, case)
        arrays[f"loaded/{case.label}"] = latency
        return row

    def rung(one: rungs.Rung, size: int) -> Row:
        row, some = run_rung(runner, one, size)
        arrays.update({f"rung/{one.label}/{size}/{name}": values for name, values in some.items()})
        return row

    for count in range(1, launching.MOST_LAUNCHES + 1):
        tried("launches", f"{count} empty", partial(launching.run_empty, runner, count))
    tried("launches", "arguments", partial(launching.run_arguments, runner))
    for fmas in mixes.CODE:
        tried("launches", f"{fmas} FFMAs once", partial(launching.run_once, runner, fmas))
    for words in launching.sizes(runner):
        tried("reads", f"read {words} words", partial(launching.run_read, runner, words))
    for loop in mixes.loops():
        tried("loops", loop.label, partial(run_loop, runner, loop))
    say("loops done")
    for case in latencies.behind():
        tried("behind", case.label, partial(run_behind, runner, case))
    say("loads behind loads done")
    for one in rungs.rungs():
        for size in runner.extent.sizes if not one.steps else runner.extent.sizes[-1:]:
            tried("rungs", f"{one.label} {size}", partial(rung, one, size))
    say("rungs done")
    for beside in latencies.loaded():
        tried("loaded", beside.label, partial(loaded, beside))
    return found, arrays
