"""Rows of the table of counters, made from a counting record: one per kernel and problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gemmlab.core.notebook_view import Display
from gemmlab.core.records import Record, Result


@dataclass(frozen=True, slots=True, repr=False)
class CountRow(Display):
    """Counters of one kernel on one problem. A figure is `None` if it was not counted: the kernel may not have run."""

    name: str
    size: str
    idea: str
    verified: bool | None
    outcome: str
    """`Result.outcome`, or that it did not run or was not verified."""
    instructions: float | None
    """Instructions executed by warps."""
    fma_share: float | None
    """Fraction of executed instructions that are FFMA."""
    threads_per_instruction: float | None
    """Mean number of lanes, of 32, that are predicated on."""
    load_requests: float | None
    """Requests of warps to global memory: loads, asynchronous copies to shared memory and texture fetches."""
    load_sectors: float | None
    """Sectors of 32 bytes per load request."""
    store_sectors: float | None
    """Sectors of 32 bytes per store request."""
    shared_wavefronts: float | None
    shared_excess: float | None
    """Wavefronts of shared memory that bank conflicts add; they are part of `shared_wavefronts`."""
    barriers: float | None
    notes: tuple[str, ...]

    def _line(self) -> str:
        return str(self)

    def __str__(self) -> str:
        """Return the kernel and its first counters in words."""
        if self.instructions is None:
            return f"{self.name} at {self.size}: not counted"
        shared = "" if self.shared_wavefronts is None else f", {self.shared_wavefronts:,.0f} shared wavefronts"
        return f"{self.name} at {self.size}: {self.instructions:,.0f} instructions{shared}"


_LOADS = ("global_load", "async_copy", "texture_load")
# Wavefronts of asynchronous copies are those that the banks need; Nsight Compute's source page leaves some out.
_SHARED = ("shared_load", "shared_store", "shared_atomic", "async_copy")


def count_rows(record: Record) -> list[CountRow]:
    """Return the rows in the record's order."""
    return [_row(result) for result in record.results]


def wrong_counts(rows: Sequence[CountRow]) -> list[str]:
    """Return a line for each kernel with a wrong result or a hazard, such as a race."""
    return [
        f"{row.name} at {row.size}: {'; '.join([row.outcome, *row.notes])}" for row in rows if row.verified is False
    ]


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
        outcome=result.outcome or ("not run" if instructions is None else "not verified"),
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
