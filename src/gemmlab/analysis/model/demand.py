"""The demand of a block: the cycles for which it keeps each unit of an SM busy.

A block's instructions are divided evenly among the SM's four partitions, which each have their own pipes and issue
slots.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gemmlab.analysis.model.room import PARTITIONS
from gemmlab.analysis.model.script import Script

ISSUE, L1, TEXTURE = "issue slots", "shared memory and L1", "texture units"
UNITS: Mapping[str, str] = {
    "fma": "FMA pipe", "fmaheavy": "FMA pipe", "alu": "integer pipe", "xu": "special functions",
    "tensor": "tensor cores",
}  # fmt: skip
"""Pipe -> name of its unit. Pipes that are never the busiest are left out."""


def demand_at(depth: float, known: Mapping[float, Mapping[str, float]]) -> dict[str, float]:
    """Return the busy cycles by unit of a block of any depth (`Load.depth`); `known` has `demand_of` by studied depth.

    They lie on a straight line through the smallest and the largest studied depth, but not below 0. If only one depth
    was studied, its cycles are returned.
    """
    (low, one), (high, two) = min(known.items(), key=_depth), max(known.items(), key=_depth)
    if high == low:
        return dict(one)
    return {unit: max(0.0, one[unit] + (two[unit] - one[unit]) * (depth - low) / (high - low)) for unit in one}


def demand_of(script: Script) -> dict[str, float]:
    """Return the cycles for which one block keeps each unit busy, by unit.

    An instruction takes one issue slot. Those that loaded registers take besides (`Constants.returned`) count as
    waiting, as `docs/model.md` says.
    """
    found = {ISSUE: script.steps / PARTITIONS, L1: 0.0, TEXTURE: 0.0, **dict.fromkeys(UNITS.values(), 0.0)}
    steps = np.concatenate([np.empty((0, 2), np.int64), *script.warps])
    times = np.bincount(steps[:, 0], minlength=len(script.code)).tolist()
    for line, count in zip(script.code, times, strict=True):
        if line.pipe in UNITS:
            found[UNITS[line.pipe]] += count * line.busy / PARTITIONS
    executions = np.bincount(steps[steps[:, 1] >= 0, 1], minlength=len(script.requests)).tolist()
    for request, count in zip(script.requests, executions, strict=True):
        found[L1] += count * request.l1
        found[TEXTURE] += count * request.texels
    return found


def _depth(known: tuple[float, Mapping[str, float]]) -> float:
    return known[0]
