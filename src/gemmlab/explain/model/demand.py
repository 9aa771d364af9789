"""What a block asks of each unit of an SM, in cycles that the unit is busy."""

from __future__ import annotations

from collections.abc import Mapping

from gemmlab.explain.model.room import PARTITIONS
from gemmlab.explain.model.script import Script

ISSUE, L1 = "issue slots", "shared memory and L1"
UNITS: Mapping[str, str] = {
    "fma": "FMA pipe", "fmaheavy": "FMA pipe", "alu": "integer pipe", "xu": "special functions",
    "tensor": "tensor cores",
}  # fmt: skip
"""By pipe; other pipes are never the busiest."""


def demand_at(depth: float, known: Mapping[float, Mapping[str, float]]) -> dict[str, float]:
    """By unit, at any depth: a straight line through the `demand_of` at those that were studied."""
    (low, one), (high, two) = min(known.items(), key=_depth), max(known.items(), key=_depth)
    if high == low:
        return dict(one)
    return {unit: max(0.0, one[unit] + (two[unit] - one[unit]) * (depth - low) / (high - low)) for unit in one}


def demand_of(script: Script) -> dict[str, float]:
    """By unit."""
    found = {ISSUE: script.steps / PARTITIONS, L1: 0.0, **dict.fromkeys(UNITS.values(), 0.0)}
    for way in script.warps:
        for at, asked in way:
            line = script.code[at]
            if line.pipe in UNITS:
                found[UNITS[line.pipe]] += line.busy / PARTITIONS
            if asked >= 0:
                found[L1] += script.requests[asked].l1
    return found


def _depth(known: tuple[float, Mapping[str, float]]) -> float:
    return known[0]
