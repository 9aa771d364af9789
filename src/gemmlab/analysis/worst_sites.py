"""The worst line of each kind of access: the place that a finding names, with that place's own figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gemmlab.analysis.access_sites import AccessRow
from gemmlab.core import counters as core

NOWHERE = "nowhere that ran"
_KINDS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "load": ((core.GLOBAL_LOAD,), "excess"),
    "store": ((core.GLOBAL_STORE,), "excess"),
    "load_conflict": ((core.SHARED_LOAD,), "excess"),
    "store_conflict": ((core.SHARED_STORE,), "excess"),
    "copy_conflict": ((core.ASYNC_COPY,), "excess"),
    "local": ((core.LOCAL_LOAD, core.LOCAL_STORE), "cycles"),
    "atomic": ((core.GLOBAL_ATOMIC, core.SHARED_ATOMIC), "cycles"),
}
"""A short name, its kinds of access, and what makes a line of them bad."""


def worst_facts(rows: Sequence[AccessRow]) -> dict[str, float]:
    """`NAME_worst_pct`, the percentage of L1's time that goes there; `NAME_worst_sectors` and `NAME_worst_ideal` a
    request; `NAME_worst_excess`, the percentage that bank conflicts add. `rows` are of one instruction each.
    """
    facts: dict[str, float] = {}
    for name in _KINDS:
        worst = _worst(rows, name)
        requests = max(1, sum(row.requests for row in worst))
        wavefronts = sum(row.wavefronts for row in worst), sum(row.wavefronts_ideal for row in worst)
        facts[f"{name}_worst_pct"] = 100 * sum(row.share for row in worst)
        facts[f"{name}_worst_sectors"] = sum(row.sectors for row in worst) / requests
        facts[f"{name}_worst_ideal"] = sum(row.sectors_ideal for row in worst) / requests
        facts[f"{name}_worst_excess"] = 100 * (wavefronts[0] - wavefronts[1]) / max(1, wavefronts[1])
    return facts


def worst_words(rows: Sequence[AccessRow]) -> dict[str, str]:
    """`NAME_place`, as people write it: `mine.cu:12`, or the opcode of code without line numbers."""
    return {f"{name}_place": _place(_worst(rows, name)) for name in _KINDS}


def _worst(rows: Iterable[AccessRow], name: str) -> list[AccessRow]:
    """The instructions of the line that costs most in all.

    A line may hold a good access beside a bad one, as `A[i] * B[j]` does: only those at least half as bad a request as
    the worst of them count.
    """
    kinds, cost = _KINDS[name]
    lines: dict[tuple[str, int], list[AccessRow]] = {}
    for row in rows:
        if row.kind in kinds and getattr(row, cost) > 0:
            lines.setdefault((row.file, row.line), []).append(row)
    line = max(lines.values(), key=lambda group: sum(getattr(row, cost) for row in group), default=[])
    most = max((getattr(row, cost) / row.requests for row in line), default=0.0)
    return [row for row in line if 2 * getattr(row, cost) >= most * row.requests]


def _place(worst: Sequence[AccessRow]) -> str:
    if not worst:
        return NOWHERE
    return f"{worst[0].file}:{worst[0].line}" if worst[0].line else worst[0].opcode
