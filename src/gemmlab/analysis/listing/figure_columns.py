"""Columns of a listing: figures of each instruction from a run, from the model, or from a profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gemmlab.analysis.access_sites import AccessRow, rows_by_address
from gemmlab.analysis.model.schedule import InstructionTimes
from gemmlab.core.counters import Counters

COUNTED, PREDICTED, MEASURED = "counted", "predicted", "measured"


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of each instruction; some instructions may lack it."""

    name: str
    title: str
    about: str
    """One sentence that describes the figure."""
    origin: str
    """`COUNTED`, `PREDICTED` or `MEASURED`."""
    values: Mapping[int, float] = field(repr=False)
    """Byte address of an instruction -> its value."""
    adds_up: bool = True
    """True if the values of several instructions may be added up, as for a source line."""
    digits: int = 0
    """Number of digits that are shown after the decimal point."""


def counted(counters: Counters) -> list[Column]:
    """Return the columns of a counted run: executions, lanes, and those costs of memory accesses that occur in it."""
    sites = counters.sites
    rows = rows_by_address(counters)
    lanes = {site.address: site.predicated_on_threads / site.executed for site in sites if site.executed}
    sectors = {address: row.sectors_per_request for address, row in rows.items() if row.sectors}
    waves = {address: float(row.wavefronts) for address, row in rows.items() if row.wavefronts}
    return [
        Column("executions", "executions", "Times that warps executed it.", COUNTED,
               {site.address: float(site.executed) for site in sites}),
        Column("lanes", "lanes", "Lanes that took part in an execution, of 32, in the mean.", COUNTED, lanes, False, 1),
        *_some(Column("sectors", "sectors /request", "Sectors of 32 bytes a request of global memory.", COUNTED,
                      sectors, False, 1)),
        *_some(Column("wavefronts", "wavefronts", "Wavefronts of shared memory.", COUNTED, waves)),
        *_some(Column("excess", "excess", "Wavefronts that bank conflicts add, or sectors beyond those that the bytes "
                      "need.", COUNTED, _excess(rows))),
        *_some(Column("l1", "% of L1", "Share of the cycles that all accesses occupy L1.", COUNTED,
                      {address: 100 * row.share for address, row in rows.items() if row.share}, True, 1)),
    ]  # fmt: skip


def predicted(times: InstructionTimes) -> list[Column]:
    """Return the columns of a simulated schedule: the time that warps spend at each instruction."""
    total = float(times.cycles.sum()) or 1.0
    ran = [at for at, count in enumerate(times.executions.tolist()) if count]

    def each(values: Iterable[float]) -> dict[int, float]:
        found = list(values)
        return {16 * at: found[at] / int(times.executions[at]) for at in ran}

    return [
        Column("time", "% of time", "Predicted share of the cycles of all warps that pass before it issues.",
               PREDICTED, {16 * at: 100 * float(times.cycles[at]) / total for at in ran}, True, 1),
        Column("cycles", "cycles", "Predicted cycles of a warp from the issue before to its issue.", PREDICTED,
               each(times.cycles.tolist()), False, 1),
        Column("dependency", "for data", "Of these, cycles until the results that it waits for are there.",
               PREDICTED, each(times.dependency.tolist()), False, 1),
        Column("fetch", "for code", "Of these, cycles until its code is in the instruction cache.", PREDICTED,
               each(times.fetch.tolist()), False, 1),
    ]  # fmt: skip


def measured(samples: Mapping[int, float], origin: str) -> list[Column]:
    """Return the columns of a profile: the samples in which a warp was at the instruction, as a number and in percent.

    `samples` are by instruction address; `origin` names the profile.
    """
    total = sum(samples.values()) or 1.0
    return [
        Column("samples", "samples", f"Samples of {origin} that found a warp at it.", MEASURED, dict(samples)),
        Column("sampled", "% sampled", f"Its share of all samples of {origin}.", MEASURED,
               {address: 100 * count / total for address, count in samples.items()}, True, 1),
    ]  # fmt: skip


def agreement(predicted_shares: Column, measured_shares: Column, groups: Iterable[Iterable[int]]) -> float:
    """Return the overlap of predicted and measured time in percent: the sum over `groups` of the smaller share.

    Both columns hold percentages of the time. A group has the addresses of one instruction or of one source line.
    """
    columns = (predicted_shares, measured_shares)
    return sum(min(sum(one.values.get(at, 0.0) for at in group) for one in columns) for group in map(list, groups))


def _excess(rows: Mapping[int, AccessRow]) -> dict[int, float]:
    return {address: float(row.excess) for address, row in rows.items() if row.excess}


def _some(column: Column) -> list[Column]:
    """Return a list of the column; empty if no instruction has a value."""
    return [column] if column.values else []
