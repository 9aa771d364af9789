"""A record's results as data of tables: texts of cells, with the keys by which a page sorts columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gemmlab.core.numerals import plain
from gemmlab.core.records import Record, Result
from gemmlab.observe.cache_record import cache_rows
from gemmlab.ops.catalog import unit_of
from gemmlab.ops.op import LIMITS
from gemmlab.results.climb_rows import climb_rows, digits, peer_names, percent, short_size, times, with_precision
from gemmlab.results.count_rows import count_rows
from gemmlab.results.summary import FASTEST, Row, Summary


@dataclass(frozen=True, slots=True)
class Cell:
    """The text of a cell, and the key that it is sorted by if that differs from the number shown."""

    text: str
    key: float | None = None
    kernel: str = ""
    """Id of the kernel whose section the cell links to; empty for no link."""
    wrong: bool = False
    """True if the page marks the cell as an error."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table: every row has as many cells as there are headings."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    texts: frozenset[int] = frozenset({0})
    """Indices of the columns of words; the others are numbers."""
    note: str = ""


def climb_table(record: Record) -> Table:
    """Return the table of a climb: rungs in ladder order, then library calls and peers.

    The table of a climb on a GPU has no column of threads.
    """
    rows, unit = climb_rows(record), unit_of(record.op)
    peers = peer_names(rows)
    headings = ("", "size", "threads", "ms", unit, "of peak", "x first", *(f"x {peer}" for peer in peers), "idea")
    cells = [
        (
            Cell(with_precision(row.name, row.precision), kernel=row.name if row.role == "rung" else ""),
            size_cell(row.size), Cell(str(row.threads)), Cell(digits(row.time_us / 1e3)), Cell(digits(row.speed)),
            Cell(percent(row.peak_share)), _ratio(row.to_first), *(_ratio(row.to_peers.get(peer)) for peer in peers),
            Cell(row.idea or row.about),
        )
        for row in rows
    ]  # fmt: skip
    note = f"of peak: of the {LIMITS[unit]} measured in the same rounds; x: {unit} to those of the first rung at its "
    note += "own size, and of each peer at the same size and thread count."
    table = Table("Rungs, library calls and peers", headings, tuple(cells), frozenset({0, len(headings) - 1}), note)
    return _as_measured(record, table)


def bench_table(record: Record, summary: Summary) -> Table:
    """Return the table of a bench, with one row per contestant, problem and (on a CPU) thread count."""
    rows, unit = summary.rows, unit_of(record.op)
    peers = list(dict.fromkeys(row.contestant for row in rows if row.role == "peer"))
    ratios = (*(f"x {contestant(peer)}" for peer in peers), *(["95 % of fastest"] * bool(peers)))
    headings = ("", "size", "threads", "ms", "IQR", unit, "of peak", "result", *ratios)
    cells = [
        (
            name_cell(row), size_cell(row.label), Cell(str(row.threads)), Cell(plain(row.median_us / 1e3)),
            Cell(f"{row.iqr_us / row.median_us:.1%}"), Cell(digits(row.speed(unit))), Cell(percent(row.peak_share)),
            verdict(row.verified), *(_interval(row, peer) for peer in peers),
            *([_fastest(row)] if peers else []),
        )
        for row in rows
    ]  # fmt: skip
    note = f"ms: median; IQR: middle half, as a share of it; of peak: of the {LIMITS[unit]} probed in the same rounds; "
    note += "x: our speed to theirs, and the 95 % interval of the ratio to the fastest of them at that size."
    table = Table("Every contestant at every size", headings, tuple(cells), frozenset({0, 7}), note)
    return _as_measured(record, table)


def _as_measured(record: Record, table: Table) -> Table:
    """Return the table; if a GPU was measured, without the column of CPU threads."""
    if record.device.get("id", "cpu") == "cpu":
        return table
    place = table.headings.index("threads")
    return replace(
        table,
        headings=(*table.headings[:place], *table.headings[place + 1 :]),
        rows=tuple((*row[:place], *row[place + 1 :]) for row in table.rows),
        texts=frozenset(index - (index > place) for index in table.texts),
    )


def count_table(record: Record) -> Table:
    """Return the table of the counters in a record."""
    headings = ("", "size", "warp instructions", "FFMA", "threads / instruction", "global loads", "sectors / load",
                "sectors / store", "shared wavefronts", "of them excess", "barriers", "result", "notes")  # fmt: skip
    cells = [
        (
            Cell(row.name, kernel=row.name), size_cell(row.size), _whole(row.instructions),
            Cell(percent(row.fma_share)), Cell(plain(row.threads_per_instruction)), _whole(row.load_requests),
            Cell(plain(row.load_sectors)), Cell(plain(row.store_sectors)), _whole(row.shared_wavefronts),
            _whole(row.shared_excess), _whole(row.barriers), Cell(row.outcome, wrong=row.verified is False),
            Cell("; ".join(row.notes)),
        )
        for row in count_rows(record)
    ]  # fmt: skip
    note = (
        f"Counted, not timed, on {record.device.get('id')} from the machine code: executions by warps, requests and "
        "32-byte sectors of global memory, wavefronts of shared memory (excess: what bank conflicts add)."
    )
    return Table("Counted", headings, tuple(cells), frozenset({0, 11, 12}), note)


def cache_table(record: Record) -> Table:
    """Return the table of simulated caches: misses per thousand multiply-adds, and bytes moved per multiply-add."""
    headings = ("", "size", "bytes touched", "L1 misses", "L2 misses", "TLB misses", "bytes L1-L2", "bytes L2-memory",
                "time spent packing")  # fmt: skip
    cells = [
        (
            Cell(row.kernel, kernel=row.kernel), size_cell(row.size),
            *(Cell(plain(count)) for count in (row.accessed_bytes, row.l1_misses, row.l2_misses, row.tlb_misses,
                                               row.from_l2, row.from_memory)),
            Cell(percent(row.packing_time)),
        )
        for row in cache_rows(record)
    ]  # fmt: skip
    note = "Misses per thousand multiply-adds, bytes per multiply-add."
    return Table("Simulated caches", headings, tuple(cells), note=note)


def verified_table(results: Iterable[Result]) -> Table:
    """Return the table of results that were not timed, with their verdicts and notes."""
    cells = [
        (
            Cell(contestant(result.contestant), kernel=kernel_of(result)), size_cell(result.label),
            Cell(str(result.threads)), Cell(result.outcome or "-", wrong=result.verified is False),
            Cell("" if result.max_error_ratio is None else f"{result.max_error_ratio:.3g}"),
            Cell("; ".join(result.notes)),
        )
        for result in results
    ]  # fmt: skip
    headings = ("", "size", "threads", "result", "error / bound", "notes")
    return Table("Not timed", headings, tuple(cells), frozenset({0, 3, 5}))


def kernel_of(result: Result) -> str:
    """Return the id of a result's kernel, without its configuration; empty for peers, probes and library calls."""
    name = result.contestant
    if name.startswith("kernel:"):
        return name.removeprefix("kernel:").partition("[")[0]
    return name if not result.facts.get("role") and not result.samples else ""


def contestant(name: str) -> str:
    """Return a contestant's name as tables show it, without the prefix `kernel:` and the suffix `:best`."""
    return name.removeprefix("kernel:").removesuffix(":best")


def name_cell(row: Row) -> Cell:
    """Return the cell of a contestant's name, with its precision if that is not float32."""
    kernel = contestant(row.contestant).partition("[")[0] if row.contestant.startswith("kernel:") else ""
    return Cell(with_precision(contestant(row.contestant), row.precision), kernel=kernel)


def size_cell(label: str) -> Cell:
    """Return the cell of a problem's size, which is sorted by the product of its extents."""
    sides = label.split("x")
    work = 1.0
    for side in sides:
        work *= float(side) if side.isdecimal() and len(side) < 100 else 1.0
    return Cell(short_size(label), key=work)


def verdict(verified: bool | None) -> Cell:
    """Return the cell of a verdict: PASS, FAIL, or a dash if the result was not verified."""
    return Cell({True: "PASS", False: "FAIL", None: "-"}[verified], wrong=verified is False)


def _fastest(row: Row) -> Cell:
    ratio = row.ratios.get(FASTEST)
    return Cell("") if ratio is None else Cell(f"{ratio.low:.3f} to {ratio.high:.3f}", key=ratio.low)


def _interval(row: Row, peer: str) -> Cell:
    ratio = row.ratios.get(peer)
    return Cell("" if ratio is None else f"{ratio.value:.3f}")


def _ratio(value: float | None) -> Cell:
    return Cell("" if value is None else times(value))


def _whole(value: float | None) -> Cell:
    return Cell("" if value is None else f"{value:,.0f}")
