"""The part of a page about one record: its charts, its tables and the circumstances of its measurement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gemmlab.core.errors import GemmlabError, RecordError
from gemmlab.core.numerals import plain
from gemmlab.core.records import Record
from gemmlab.ops.catalog import unit_of
from gemmlab.pages.charts import Drawing, curve_drawings, ladder_drawing
from gemmlab.pages.circumstances import Lines, environment, libraries, method
from gemmlab.pages.tables import (
    Cell,
    Table,
    bench_table,
    cache_table,
    climb_table,
    contestant,
    count_table,
    kernel_of,
    verified_table,
)
from gemmlab.results.climb_rows import digits, percent, short_size, times
from gemmlab.results.summary import FASTEST, OURS, Summary, summarise
from gemmlab.timing.configurations import config_tables

_NAMES = {"cache": "caches", "count": "counters"}
"""Kind of record -> its name in titles, if that differs."""


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a page about one record."""

    file: str
    title: str
    date: str
    headline: str
    """The best result in a sentence; empty if nothing was timed."""
    drawings: tuple[Drawing, ...]
    tables: tuple[Table, ...]
    environment: Lines
    method: Lines
    libraries: Lines
    notes: tuple[str, ...]
    record: Record


def part_of(path: Path, record: Record) -> Part:
    """Return the part of a record. Raises `RecordError` for a record without results or with invalid facts."""
    if not record.results:
        raise RecordError(f"{path}: the record holds no results")
    try:
        return _part(path, record)
    except GemmlabError as error:
        raise RecordError(f"{path}: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        # Facts are free JSON: an invalid one is only noticed at its use.
        raise RecordError(f"{path}: facts that cannot be used ({type(error).__name__}: {error})") from error


def _part(path: Path, record: Record) -> Part:
    summary = summarise(record)
    where = record.device.get("name") or record.environment.get("cpu") or record.device.get("id")
    drawings = [drawing for drawing in (ladder_drawing(record), *curve_drawings(record)) if drawing is not None]
    return Part(
        file=path.name,
        title=f"{record.op} on {where}: {_NAMES.get(record.kind, record.kind)}",
        date=str(record.environment.get("time_utc", ""))[:10],
        headline=headline(record, summary),
        drawings=tuple(drawings),
        tables=tuple(_tables(record, summary)),
        environment=environment(record), method=method(record), libraries=libraries(record),
        notes=tuple(_notes(record)), record=record,
    )  # fmt: skip


def headline(record: Record, summary: Summary) -> str:
    """Return a sentence on gemmlab's fastest kernel or call at the largest problem, with its share of the peak and its
    ratio to the fastest peer, if these are known.

    Those that were verified and found wrong do not count. Empty if none is left.
    """
    ours = [row for row in summary.rows if row.role in OURS and row.verified is not False]
    if not ours:
        return ""
    unit = unit_of(record.op)
    best = max(ours, key=lambda row: (row.flops, row.speed(unit)))
    share = f", {percent(best.peak_share)} of the peak probed beside it" if best.peak_share is not None else ""
    ratio = best.ratios.get(FASTEST)
    beside = f", {times(ratio.value)} x {contestant(best.fastest or '')}" if ratio is not None else ""
    threads = f" on {best.threads} threads" if best.threads > 1 else ""
    name = contestant(best.contestant)
    return f"{name} reaches {digits(best.speed(unit))} {unit} at {short_size(best.label)}{threads}{share}{beside}."


def _tables(record: Record, summary: Summary) -> Iterator[Table]:
    if record.kind == "count":
        yield count_table(record)
        return
    if record.kind == "cache":
        yield cache_table(record)
        return
    if summary.rows:
        yield climb_table(record) if record.kind == "climb" else bench_table(record, summary)
    for found in config_tables(record) if any("[" in result.contestant for result in record.results) else []:
        on = "" if found.threads == 1 else f" on {found.threads} threads"
        rows = tuple(
            (Cell(config.replace(",", " ")), *(Cell("" if ms is None else plain(ms)) for ms in cells))
            for config, cells in found.rows.items()
        )
        headings = ("configuration", *map(short_size, found.sizes))
        yield Table(f"{found.kernel}{on}: median ms of each configuration", headings, rows)
    if untimed := [r for r in record.results if not r.samples and (r.verified is not None or kernel_of(r))]:
        yield verified_table(untimed)


def _notes(record: Record) -> Iterator[str]:
    notes = list(record.notes)
    if record.kind != "count":
        notes += [f"{contestant(r.contestant)} at {r.label}: {note}" for r in record.results for note in r.notes]
    yield from dict.fromkeys(notes)
