"""Reasons for the effect of a parameter: the emulator's counters of a configuration beside those of the best one.

Each counter is a cost, so it is a reason only if it changes in the same direction as the time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from gemmlab.core.errors import GemmlabError
from gemmlab.devices.device import Device
from gemmlab.kernels.fitting import fitted
from gemmlab.kernels.kernel import Kernel
from gemmlab.observe.counting import Count, count_kernels
from gemmlab.ops.op import Op
from gemmlab.results.sensitivity import Change, Sensitivity

SIZES = {"gemm": "256x256x128", "batch": "4*64x64x64", "sums": "64x1024x16", "reduce": "2^18"}
MOST_REASONS = 3
_LEAST_CHANGE = 0.05
_SPOKEN = {
    "instructions": "instructions", "registers": "registers a thread", "spill_stores": "bytes spilled a thread",
    "shared_load_wavefronts": "wavefronts of shared loads", "shared_store_wavefronts": "wavefronts of shared stores",
    "shared_load_excess": "bank conflicts of loads", "shared_store_excess": "bank conflicts of stores",
    "global_load_sectors": "sectors loaded", "global_load_requests": "global load requests",
    "global_store_sectors": "sectors stored", "async_copy_sectors": "sectors copied",
    "async_copy_requests": "asynchronous copies", "barriers": "barriers",
}  # fmt: skip


def with_reasons(found: Sensitivity, kernel: Kernel, op: Op, device: Device) -> Sensitivity:
    """Return `found` with reasons for its changes of single parameters: counters that move with the time.

    A change has no reasons if the emulator cannot count it.
    """
    before = counters(kernel, op, device, found.best)
    if not before:
        return found
    single = [
        explained(change, before, counters(kernel, op, device, _changed(found, change))) for change in found.single
    ]
    return replace(found, single=tuple(single))


def counters(kernel: Kernel, op: Op, device: Device, config: Mapping[str, int]) -> dict[str, float]:
    """Return name -> value of the counters of one emulated run at a small size (`SIZES`).

    The result is empty if the emulator cannot run the kernel, or if `SIZES` lacks the operation.
    """
    try:
        problems = fitted(kernel, op, config, op.parse_sizes(SIZES[op.name]))
        record = count_kernels(Count(op, device, [kernel], problems[:1], config=config, verify=False))
    except (GemmlabError, KeyError):
        return {}
    facts = record.results[0].facts
    if "facts" not in facts:
        return {}
    executed = float(sum(facts["opcodes"].values()))
    return {**facts["facts"], **facts["resources"], "instructions": executed}


def _changed(found: Sensitivity, change: Change) -> dict[str, int]:
    return {**found.best, **dict(zip(change.names, change.after, strict=True))}


def explained(change: Change, before: Mapping[str, float], after: Mapping[str, float]) -> Change:
    """Return the change with at most `MOST_REASONS` counters as reasons, the largest relative move first.

    `before` has the counters of the best configuration, `after` those of the changed one. A counter is a reason if it
    moves in the direction of the time, by more than 5 %.
    """
    moves = []
    for name, words in _SPOKEN.items():
        old, new = before.get(name), after.get(name)
        if old is None or new is None or max(old, new) <= 0:
            continue
        size = math.copysign(1.0, change.ratio - 1.0) * math.log((new + 1) / (old + 1))
        if size > _LEAST_CHANGE:
            moves.append((size, f"{words} {old:,.0f} -> {new:,.0f}"))
    moves.sort(reverse=True)
    return replace(change, reasons=tuple(text for _, text in moves[:MOST_REASONS]))
