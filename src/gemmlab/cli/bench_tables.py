"""Print the tables of `gemmlab bench`: contestants, sizes, and one row per contestant and size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gemmlab.cli.console import add_row, plain_table, table_console
from gemmlab.core.numerals import plain
from gemmlab.core.words import counted
from gemmlab.ops.catalog import find_op, unit_of
from gemmlab.ops.op import LIMITS
from gemmlab.results.climb_rows import digits, percent, short_size, times, with_precision
from gemmlab.results.summary import BASELINE, FASTEST, QUOTED, all_notes
from gemmlab.timing.configurations import config_tables

if TYPE_CHECKING:
    from rich.table import Table

    from gemmlab.core.records import Record
    from gemmlab.ops.op import Op
    from gemmlab.results.summary import Row, Summary, Verdict
    from gemmlab.timing.configurations import ConfigTable


def print_tables(record: Record, summary: Summary, verdict: Verdict | None) -> None:
    """Print all tables, notes and the verdict on standard output."""
    console = table_console()
    console.print(_contestants(record))
    console.print()
    op = find_op(record.op)
    console.print(_sizes(summary.rows, op))
    console.print()
    console.print(_rows(summary.rows, op.unit))
    for line in _legend(record, summary):
        console.print(line)
    for table in config_tables(record):
        threads = "" if table.threads == 1 else f" on {table.threads} threads"
        console.print(f"\n{table.kernel}{threads}: median ms of each configuration, * the best of a size")
        console.print(_configurations(table))
    if summary.means:
        console.print("\nGeometric mean of speed ratios (95 % interval):")
    for mean in summary.means:
        ratio = mean.ratio
        console.print(
            f"  {mean.contestant} / {mean.peer}, {counted(mean.threads, 'thread')}, {counted(mean.problems, 'size')}: "
            f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})",
        )  # fmt: skip
    for note in all_notes(record):
        console.print(f"note: {note}")
    if verdict is not None:
        console.print("targets met" if verdict.passed else "targets missed:")
        for failure in verdict.failures:
            console.print(f"  {failure}")


def _contestants(record: Record) -> Table:
    table = plain_table(("contestant", "library", "version", "core type", "thread runtime"), texts=5)
    facts = {result.contestant: result.facts for result in record.results if result.facts.get("role") != "peak"}
    for name, known in facts.items():
        cells = [str(known.get(key) or "") for key in ("library", "version", "core_type", "thread_runtime")]
        add_row(table, (name, *cells))
    return table


def _configurations(found: ConfigTable) -> Table:
    table = plain_table(("configuration", *map(short_size, found.sizes)), texts=1)
    for config, times_ms in found.rows.items():
        cells = [
            "" if time is None else f"{plain(time)}{'*' if time == best else ' '}"
            for time, best in zip(times_ms, found.best, strict=True)
        ]
        add_row(table, (config.replace(",", " "), *cells))
    return table


def _sizes(rows: Sequence[Row], op: Op) -> Table:
    table = plain_table(("size", op.unit.removesuffix("/s"), "float64\nreference ms"), texts=1)
    for row in {row.label: row for row in rows}.values():
        reference = "" if row.reference_us is None else digits(row.reference_us / 1e3)
        add_row(table, (short_size(row.label), digits(row.speed(op.unit) * row.median_us / 1e6), reference))
    return table


def _rows(rows: Sequence[Row], unit: str) -> Table:
    peers = list(dict.fromkeys(row.contestant for row in rows if row.role == "peer"))
    naive = any(row.to_naive is not None for row in rows)
    headings = ["contestant", "size", "thr", "ms", "IQR", unit.replace("/", "\n/"), "of\npeak", "result"]
    headings += ["x\nnaive"] * naive + [f"x\n{_plain(peer)}" for peer in peers] + ["95 %\nof *"] * bool(peers)
    table = plain_table(headings, texts=1)
    for row in rows:
        name = with_precision(row.contestant.removeprefix("kernel:"), row.precision)
        cells = [
            name, short_size(row.label), str(row.threads),
            plain(row.median_us / 1e3), f"{row.iqr_us / row.median_us:.1%}", digits(row.speed(unit)),
            percent(row.peak_share), {True: "PASS", False: "FAIL", None: "-"}[row.verified],
        ]  # fmt: skip
        if naive:
            cells.append("" if row.to_naive is None else times(row.to_naive))
        for peer in peers:
            ratio = row.ratios.get(peer)
            cells.append("" if ratio is None else f"{ratio.value:.3f}{'*' if peer == row.fastest else ''}")
        if peers:
            best = row.ratios.get(FASTEST)
            cells.append("" if best is None else f"{best.low:.3f}-{best.high:.3f}")
        add_row(table, cells)
    return table


def _legend(record: Record, summary: Summary) -> list[str]:
    unit = unit_of(record.op)
    peak = f"of the {LIMITS[unit]} probed in the same rounds"
    lines = [f"ms: median; IQR: interquartile range divided by the median; of peak: {peak}."]
    if summary.means:
        lines.append("x: the row's speed divided by the peer's; * marks the fastest peer of that size.")
    if any(row.role == QUOTED for row in summary.rows):
        lines.append("cublaslt: the fastest of its first 16 algorithms, each timed; no kernel is compared with it.")
    naive = [row for row in summary.rows if row.role == BASELINE]
    if naive:
        name = naive[0].contestant.partition(":")[2]
        where = ", ".join(short_size(row.label) for row in naive)
        lines.append(
            f"x naive: {unit} divided by those of {name} on one thread, at the same size if {name} finishes it in time "
            f"({where}), else at the largest of these."
        )
    if record.method is not None:
        lines.append(f"caches: {record.method.mode} ({'; '.join(record.method.notes)})")
    return lines


def _plain(contestant: str) -> str:
    return contestant.removesuffix(":best")
