"""A climb's record as the rows of its table: one entry a rung, then the library calls and the peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gemmlab.core.precision import FLOAT32
from gemmlab.core.records import Record, Result
from gemmlab.core.stats import spread
from gemmlab.kernels.catalog import all_kernels
from gemmlab.ops.catalog import find_op
from gemmlab.ops.op import GBS, GFLOPS
from gemmlab.results.summary import FASTEST, Row, summarise


@dataclass(frozen=True, slots=True)
class ClimbRow:
    """One line of the table. Ratios are of speeds: above 1, this entry is faster."""

    name: str
    role: str
    """`"rung"`, `"library call"` or `"peer"`."""
    size: str
    threads: int
    time_us: float
    spread: float
    """Middle half of the times, as a share of their median."""
    gflops: float
    peak_share: float | None
    """Of the FMA peak probed in the same rounds on as many threads."""
    to_first: float | None
    """GFLOP/s to those of the first rung, whatever size that one was timed at."""
    to_peers: Mapping[str, float]
    """To each peer on the same problem with as many threads, timed in turns with this entry."""
    verified: bool | None
    idea: str
    about: str
    """Library, version, core type, thread runtime, as far as they are known."""
    precision: str = FLOAT32
    """What its inputs are rounded to; ratios to peers are to those of the same."""
    unit: str = GFLOPS
    """What the operation's speed is told in."""
    speed: float = 0.0
    """In that unit."""


def climb_rows(record: Record) -> list[ClimbRow]:
    """Rungs in ladder order, then library calls by thread count, each with the peers timed beside it.

    The order is today's; rungs that the catalog does not know come last, in the order that they had.
    """
    facts = {(r.label, r.threads, r.contestant): r.facts for r in record.results}
    rows = summarise(record).rows
    places = {f"kernel:{kernel.id}": place for place, kernel in enumerate(all_kernels())}

    def place(row: Row) -> tuple[int, int]:
        return places.get(row.contestant, len(places)), facts[_key(row)].get("step") or 0

    rungs = sorted((row for row in rows if row.role == "rung"), key=place)
    calls = [row for row in rows if row.role == "library call"]
    # Where there is no library call, peers are shown where the highest rungs were timed.
    top = max(rungs, key=lambda row: row.gflops * row.median_us, default=None)
    beside = {(row.label, row.threads) for row in (calls or [row for row in (top,) if row])}
    others = [row for row in rows if row.role == "peer" and (row.label, row.threads) in beside]
    names = {row.contestant: str(facts[_key(row)].get("name", row.contestant)) for row in rows}
    first = rungs[0].gflops if rungs else None
    # Stable: within a thread count the library call comes first.
    last = sorted((*calls, *others), key=lambda row: row.threads)
    unit = find_op(record.op).unit
    return [_row(row, facts[_key(row)], names, first, unit) for row in (*rungs, *last)]


def peer_names(rows: Sequence[ClimbRow]) -> list[str]:
    """Every peer any row was compared with, in order of appearance."""
    return list(dict.fromkeys(name for row in rows for name in row.to_peers))


def peaks(record: Record) -> dict[int, float]:
    """Thread count -> the median peak probed beside its rungs, in the operation's unit."""
    unit, found = find_op(record.op).unit, dict[int, list[float]]()
    for result in record.results:
        if result.facts.get("role") == "peak":
            speeds = found.setdefault(result.threads, [])
            speeds += sample_speeds(result, unit)
    return {threads: spread(speeds).median for threads, speeds in found.items() if speeds}


def sample_speeds(result: Result, unit: str) -> list[float]:
    """Of every sample, in an operation's unit."""
    work = {GFLOPS: result.flops, GBS: result.bytes}[unit]
    return [work / (sample.time_us * 1e3) for sample in result.samples]


def about(facts: Mapping[str, Any]) -> str:
    """Library, version, core type, thread runtime, as far as they are known."""
    parts = [str(facts.get(name) or "") for name in ("library", "version", "core_type", "thread_runtime")]
    return " ".join(parts[:2]).strip() + "".join(f", {part}" for part in parts[2:] if part)


def with_precision(name: str, precision: str) -> str:
    """`wmma_tf32 (tf32)`; a name alone for float32, and where it says so itself (`cublas:tf32`)."""
    return name if precision == FLOAT32 or name.endswith(f":{precision}") else f"{name} ({precision})"


def short_size(label: str) -> str:
    """`512x512x512` as `512³`, anything else as it is."""
    parts = label.split("x")
    return f"{parts[0]}³" if len(parts) == 3 and len(set(parts)) == 1 else label


def digits(value: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}" if value >= 0.01 else f"{value:.4f}"


def plain(value: float | None, digits: int = 4) -> str:
    """So many significant digits, and all of a larger number: nobody reads exponents beside other rows. Nothing for one
    that is not known.
    """
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:,.{digits}g}"


def percent(share: float | None) -> str:
    """A share to a tenth of a percent, nothing for one that is not known."""
    return "" if share is None else f"{share:.1%}"


def times(ratio: float) -> str:
    """A ratio, to two decimals where it is near 1."""
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
