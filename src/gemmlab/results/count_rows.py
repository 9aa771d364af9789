"""A counting record as the rows of its table: one entry a kernel and problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gemmlab.core.records import Record, Result


@dataclass(frozen=True, slots=True)
class CountRow:
    """What one kernel did on one problem. Figures are `None` where it could not be run."""

    name: str
    size: str
    idea: str
    verified: bool | None
    instructions: float | None
    """Executed by warps."""
    fma_share: float | None
    """Of them FFMA."""
    threads_per_instruction: float | None
    """Predicated on, of 32."""
    load_requests: float | None
    """Of global memory, by warps: loads, asynchronous copies to shared memory and texture fetches."""
    load_sectors: float | None
    """Of 32 bytes, a request."""
    store_sectors: float | None
    """Likewise for stores."""
    shared_wavefronts: float | None
    shared_excess: float | None
    """Wavefronts that bank conflicts add."""
    barriers: float | None
    notes: tuple[str, ...]


_LOADS = ("global_load", "async_copy", "texture_load")
# Of copies what the banks make of them, not what Nsight Compute's source page has: that leaves some out.
_SHARED = ("shared_load", "shared_store", "shared_atomic", "async_copy")


def count_rows(record: Record) -> list[CountRow]:
    """In the record's order."""
    return [_row(result) for result in record.results]


def _row(result: Result) -> CountRow:
    known: Mapping[str, Any] = result.facts
    facts: Mapping[str, float] = known.get("facts", {})
    opcodes: Mapping[str, int] = known.get("opcodes", {})
    instructions = facts.get("instructions")
    counted = "global_load_requests" in facts
    requests = _sum(facts, _LOADS, "requests") if counted else None
    return CountRow(
        name=str(known.get("name", result.contestant)),
        size=result.label,
        idea=str(known.get("idea", "")),
        verified=result.verified,
        instructions=instructions,
        fma_share=opcodes.get("FFMA", 0) / instructions if instructions else None,
        threads_per_instruction=facts.get("threads_per_instruction"),
        load_requests=requests,
        load_sectors=None if requests is None else _sum(facts, _LOADS, "sectors") / requests if requests else 0.0,
        store_sectors=facts.get("global_store_sectors_per_request"),
        shared_wavefronts=_sum(facts, _SHARED, "wavefronts") if counted else None,
        shared_excess=_sum(facts, _SHARED, "excess") if counted else None,
        barriers=facts.get("barriers"),
        notes=result.notes,
    )


def _sum(facts: Mapping[str, float], kinds: Sequence[str], what: str) -> float:
    return sum(facts.get(f"{kind}_{what}", 0.0) for kind in kinds)
