"""The costliest source line of each kind of access, and its figures, for findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gemmlab.analysis.access_sites import AccessRow
from gemmlab.core import counters as core

NOWHERE = "nowhere that ran"
KINDS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "load": ((core.GLOBAL_LOAD,), "excess"),
    "store": ((core.GLOBAL_STORE,), "excess"),
    "load_conflict": ((core.SHARED_LOAD,), "excess"),
    "store_conflict": ((core.SHARED_STORE,), "excess"),
    "copy_conflict": ((core.ASYNC_COPY,), "excess"),
    "local": ((core.LOCAL_LOAD, core.LOCAL_STORE), "cycles"),
    "atomic": ((core.GLOBAL_ATOMIC, core.SHARED_ATOMIC), "cycles"),
}
"""Short name, as facts and texts use it -> kinds of access, and the attribute of `AccessRow` that ranks source lines.
"""


def worst_facts(rows: Sequence[AccessRow]) -> dict[str, float]:
    """Return the figures of `worst_rows` for each NAME of `KINDS`. Each of `rows` belongs to one instruction.

    `NAME_worst_pct` is their percentage of L1's time, `NAME_worst_sectors` and `NAME_worst_ideal` are sectors per
    request, and `NAME_worst_excess` is the percentage that bank conflicts add to the ideal wavefronts.
    """
    facts: dict[str, float] = {}
    for name in KINDS:
        worst = worst_rows(rows, name)
        requests = max(1, sum(row.requests for row in worst))
        wavefronts = sum(row.wavefronts for row in worst), sum(row.wavefronts_ideal for row in worst)
        facts[f"{name}_worst_pct"] = 100 * sum(row.share for row in worst)
        facts[f"{name}_worst_sectors"] = sum(row.sectors for row in worst) / requests
        facts[f"{name}_worst_ideal"] = sum(row.sectors_ideal for row in worst) / requests
        facts[f"{name}_worst_excess"] = 100 * (wavefronts[0] - wavefronts[1]) / max(1, wavefronts[1])
    return facts


def worst_words(rows: Sequence[AccessRow], callers: Mapping[int, str]) -> dict[str, str]:
    """Return `NAME_place` for each NAME of `KINDS`: the worst line, `mine.cu:12` or `tile.cuh:3 called from
    mine.cu:12`.

    `callers` are the lines of the kernel that call the function of an inlined instruction, by the instruction's
    address. In code without line numbers the place is the opcode. It is `NOWHERE` if `worst_rows` are empty.
    """
    return {f"{name}_place": _place(worst_rows(rows, name), callers) for name in KINDS}


def worst_rows(rows: Iterable[AccessRow], name: str) -> list[AccessRow]:
    """Return the costly instructions of the source line with the largest total cost, for a name of `KINDS`.

    A line may contain a cheap access and a costly one, as `A[i] * B[j]` does. Only instructions whose cost per request
    is at least half that of the line's worst instruction are returned; none if no such access costs anything.
    """
    kinds, cost = KINDS[name]
    lines: dict[tuple[str, int], list[AccessRow]] = {}
    for row in rows:
        if row.kind in kinds and getattr(row, cost) > 0:
            lines.setdefault((row.file, row.line), []).append(row)
    line = max(lines.values(), key=lambda group: sum(getattr(row, cost) for row in group), default=[])
    most = max((getattr(row, cost) / row.requests for row in line), default=0.0)
    return [row for row in line if 2 * getattr(row, cost) >= most * row.requests]


def _place(worst: Sequence[AccessRow], callers: Mapping[int, str]) -> str:
    if not worst:
        return NOWHERE
    if not worst[0].line:
        return worst[0].opcode
    calls = " and ".join(dict.fromkeys(callers[row.address] for row in worst if row.address in callers))
    return f"{worst[0].file}:{worst[0].line}" + (f" called from {calls}" if calls else "")
