"""Show a climb: its progress while it runs, then the table of times and its notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gemmlab.cli.console import progress_console, table_console
from gemmlab.ops.catalog import unit_of
from gemmlab.ops.op import GFLOPS, LIMITS

if TYPE_CHECKING:
    from gemmlab.core.records import Record
    from gemmlab.results.climb_rows import ClimbRow
    from gemmlab.results.count_rows import CountRow
    from gemmlab.timing.climb import Step


@contextmanager
def live_steps() -> Iterator[Callable[[Step], None]]:
    """Yield a function that shows each step in a temporary progress bar, and a rung's last step also as a line."""
    from rich.progress import BarColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False), BarColumn(24), console=progress_console(), transient=True
    )
    with bar:
        task = bar.add_task("", total=None)

        def show(step: Step) -> None:
            label = f"{step.rung:<18} {step.text}" if step.rung else step.text
            if step.final:
                bar.console.print(label)
            bar.update(task, description=label, completed=step.done, total=step.total or None)

        yield show


def print_times(rows: Sequence[ClimbRow]) -> None:
    from rich.table import Table
    from rich.text import Text

    from gemmlab.results.climb_rows import digits, peer_names, percent, short_size, times, with_precision

    peers, unit = peer_names(rows), next((row.unit for row in rows), GFLOPS)
    headings = [
        "",
        "size",
        "thr",
        "ms",
        unit.replace("/", "\n/"),
        "of\npeak",
        "x\nfirst",
        *(f"x\n{peer}" for peer in peers),
    ]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(Text(heading), justify="right" if heading else "left", overflow="fold", no_wrap=not heading)
    for row in rows:
        ratios = [row.to_first, *(row.to_peers.get(peer) for peer in peers)]
        name = with_precision(row.name, row.precision)
        cells = [name, short_size(row.size), str(row.threads), digits(row.time_us / 1e3), digits(row.speed)]
        cells.append(percent(row.peak_share))
        table.add_row(*(Text(cell) for cell in (*cells, *("" if r is None else times(r) for r in ratios))))
    table_console().print(table)


def print_notes(record: Record, rows: Sequence[ClimbRow], notes: Sequence[str]) -> None:
    console, unit = table_console(), unit_of(record.op)
    console.print(
        f"\nof peak: of the {LIMITS[unit]} measured in the same rounds; x: {unit} divided by those of the first rung, "
        "or of a peer at the same size and thread count."
    )
    if len({row.size for row in rows if row.role == "rung"}) > 1:
        console.print(
            "Each rung is timed at the largest size it finishes quickly; sizes differ, so x first is no ratio of times."
        )
    print_ideas([row for row in rows if row.role == "rung"])
    console.print("\nCompared with:" if any(row.role == "peer" for row in rows) else "\nCompared with nothing.")
    for line in dict.fromkeys(f"  {row.name}: {row.about}" for row in rows if row.role in ("peer", "library call")):
        console.print(line)
    for note in (*record.notes, *notes):
        console.print(f"  note: {note}")


def print_recorded(record: Record) -> None:
    """Print a climb that was recorded on another machine, with a heading that says so."""
    from gemmlab.results.climb_rows import climb_rows
    from gemmlab.results.shipped_records import where_recorded

    console = table_console()
    console.print(f"\nRecorded, not measured here: {where_recorded(record)}")
    print_times(climb_rows(record))
    for note in record.notes:
        console.print(f"  note: {note}")


def print_ideas(rungs: Sequence[ClimbRow | CountRow]) -> None:
    """Print a heading, and for each rung a sentence that says why it is faster."""
    console = table_console()
    console.print("\nWhy each rung is faster:")
    for rung in rungs:
        console.print(f"  {rung.name}: {rung.idea}")
