"""Rows of a climb's table, made from its record: one per rung, then gemmlab's own calls and the peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gemmlab.core.precision import FLOAT32
from gemmlab.core.records import Record, Result
from gemmlab.core.stats import spread
from gemmlab.kernels.catalog import all_kernels
from gemmlab.ops.catalog import unit_of
from gemmlab.ops.op import GBS, GFLOPS
from gemmlab.results.summary import FASTEST, Row, summarise


@dataclass(frozen=True, slots=True)
class ClimbRow:
    """One row of the table. Ratios are of speeds: above 1, this entry is faster."""

    name: str
    role: str
    """`"rung"`, `"library call"` or `"peer"`."""
    size: str
    threads: int
    time_us: float
    spread: float
    """Interquartile range of the times as a fraction of their median."""
    gflops: float
    peak_share: float | None
    """Fraction of the peak (`summary.Row.peak_share`)."""
    to_first: float | None
    """GFLOP/s divided by those of the first rung, even if that was timed at another size; `None` without rungs."""
    to_peers: Mapping[str, float]
    """Peer -> this entry's speed divided by the peer's, timed in turns on the same problem with as many threads."""
    verified: bool | None
    """Verdict on the result; `None` if it was not compared with the reference."""
    idea: str
    """For a rung, a sentence that says why it is faster than the one before; else empty."""
    about: str
    """Library, version, core type and thread runtime, as far as known."""
    precision: str = FLOAT32
    """Precision to which the inputs may be rounded; the row is compared with peers of its class only."""
    unit: str = GFLOPS
    """Unit of the operation's speed."""
    speed: float = 0.0
    """Speed in `unit`."""


def climb_rows(record: Record) -> list[ClimbRow]:
    """Return the rungs in ladder order, then for each thread count the library calls and after them the peers.

    Without a library call, the peers are those at the size and thread count of the rung that did the most work. The
    ladder is that of the current catalog; rungs that it does not have come last, by the `step` in the record.
    """
    facts = {(r.label, r.threads, r.contestant): r.facts for r in record.results}
    rows = summarise(record).rows
    places = {f"kernel:{kernel.id}": place for place, kernel in enumerate(all_kernels())}

    def place(row: Row) -> tuple[int, int]:
        return places.get(row.contestant, len(places)), facts[_key(row)].get("step") or 0

    rungs = sorted((row for row in rows if row.role == "rung"), key=place)
    calls = [row for row in rows if row.role == "library call"]
    # Without a library call, peers are shown at the size and thread count of the rung that did the largest work.
    top = max(rungs, key=lambda row: row.gflops * row.median_us, default=None)
    beside = {(row.label, row.threads) for row in (calls or [row for row in (top,) if row])}
    others = [row for row in rows if row.role == "peer" and (row.label, row.threads) in beside]
    names = {row.contestant: str(facts[_key(row)].get("name", row.contestant)) for row in rows}
    first = rungs[0].gflops if rungs else None
    # The sort is stable, so that within a thread count the library call comes first.
    last = sorted((*calls, *others), key=lambda row: row.threads)
    unit = unit_of(record.op)
    return [_row(row, facts[_key(row)], names, first, unit) for row in (*rungs, *last)]


def peer_names(rows: Sequence[ClimbRow]) -> list[str]:
    """Return the names of all peers that any row is compared with, in order of appearance."""
    return list(dict.fromkeys(name for row in rows for name in row.to_peers))


def peaks(record: Record) -> dict[int, float]:
    """Return, by thread count, the median of the peak probed in turns with the rungs, in the operation's unit."""
    unit, found = unit_of(record.op), dict[int, list[float]]()
    for result in record.results:
        if result.facts.get("role") == "peak":
            speeds = found.setdefault(result.threads, [])
            speeds += sample_speeds(result, unit)
    return {threads: spread(speeds).median for threads, speeds in found.items() if speeds}


def sample_speeds(result: Result, unit: str) -> list[float]:
    """Return the speed of every sample in an operation's unit."""
    work = {GFLOPS: result.flops, GBS: result.bytes}[unit]
    return [work / (sample.time_us * 1e3) for sample in result.samples]


def about(facts: Mapping[str, Any]) -> str:
    """Return a peer's library, version, core type and thread runtime, as far as known."""
    parts = [str(facts.get(name) or "") for name in ("library", "version", "core_type", "thread_runtime")]
    return " ".join(parts[:2]).strip() + "".join(f", {part}" for part in parts[2:] if part)


def with_precision(name: str, precision: str) -> str:
    """Return the name with its precision, such as `wmma_tf32 (tf32)`.

    The name alone is returned for float32, and if it ends with the precision (`cublas:tf32`).
    """
    return name if precision == FLOAT32 or name.endswith(f":{precision}") else f"{name} ({precision})"


def short_size(label: str) -> str:
    """Return a size for display: `512x512x512` as `512³`, any other unchanged."""
    parts = label.split("x")
    return f"{parts[0]}³" if len(parts) == 3 and len(set(parts)) == 1 else label


def digits(value: float) -> str:
    """Return a number with three significant digits, from 100 on without decimals, below 0.01 with four decimals.

    It never has an exponent.
    """
    if value < 0.01:
        return f"{value:.4f}"
    # What rounds to 100 has a point without decimals after it.
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}".removesuffix(".")


def percent(share: float | None) -> str:
    """Return a fraction in percent with one decimal; empty for `None`."""
    return "" if share is None else f"{share:.1%}"


def times(ratio: float) -> str:
    """Return a ratio with three decimals below 0.1, two below 10, and as `digits` does beyond."""
    return f"{ratio:.3f}" if ratio < 0.1 else f"{ratio:.2f}" if ratio < 10 else digits(ratio)


def _key(row: Row) -> tuple[str, int, str]:
    return row.label, row.threads, row.contestant


def _row(row: Row, facts: Mapping[str, Any], names: Mapping[str, str], first: float | None, unit: str) -> ClimbRow:
    return ClimbRow(
        name=names[row.contestant], role=row.role, size=row.label, threads=row.threads,
        time_us=row.median_us, spread=row.iqr_us / row.median_us, gflops=row.gflops, peak_share=row.peak_share,
        to_first=row.gflops / first if first else None,
        to_peers={names[peer]: ratio.value for peer, ratio in row.ratios.items() if peer != FASTEST},
        verified=row.verified, idea=str(facts.get("idea", "")), about=about(facts),
        precision=row.precision, unit=unit, speed=row.speed(unit),
    )  # fmt: skip
