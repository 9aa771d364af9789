"""Show what kernels execute on an emulated GPU, where times mean nothing: the progress, the counts, their legend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gemmlab.cli.console import progress_console, table_console

if TYPE_CHECKING:
    from gemmlab.core.records import Record
    from gemmlab.observe.counting import Progress
    from gemmlab.results.count_rows import CountRow

HEADINGS = (
    "", "size", "warp\ninstr.", "FFMA", "threads\n/instr.", "global\nloads", "sectors\n/load", "sectors\n/store",
    "shared\nwavefronts", "of them\nexcess", "barriers", "result",
)  # fmt: skip


@contextmanager
def live_counts() -> Iterator[Progress]:
    """Yield a function that shows the progress of counting (a text, steps done, steps in all) in a bar."""
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    bar = Bar(TextColumn("{task.description}", markup=False), BarColumn(24), console=progress_console(), transient=True)
    with bar:
        task = bar.add_task("", total=None)

        def show(text: str, done: int, total: int) -> None:
            bar.update(task, description=f"counting {text}", completed=done, total=total)

        yield show


def print_counts(record: Record, rows: Sequence[CountRow]) -> None:
    """Print the table of counts, its legend, and the notes on kernels and on the record."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading in HEADINGS:
        table.add_column(Text(heading), justify="left" if heading in ("", "result") else "right")
    for row in rows:
        table.add_row(*(Text(cell) for cell in _cells(row)))
    console = table_console()
    console.print(table)
    console.print(
        f"\nCounted, not timed, on {record.device.get('id')} from the machine code itself: executions by warps, "
        "requests and 32-byte sectors of global memory (loads: with asynchronous copies and texture fetches), "
        "wavefronts of shared memory (excess: what bank conflicts add)."
    )
    for row in rows:
        for note in row.notes:
            console.print(f"  {row.name} at {row.size}: {note}")
    for text in record.notes:
        console.print(f"  note: {text}")


def _cells(row: CountRow) -> list[str]:
    from gemmlab.core.numerals import plain

    return [
        row.name, row.size, _whole(row.instructions), "" if row.fma_share is None else f"{row.fma_share:.1%}",
        plain(row.threads_per_instruction), _whole(row.load_requests), plain(row.load_sectors),
        plain(row.store_sectors), _whole(row.shared_wavefronts), _whole(row.shared_excess), _whole(row.barriers),
        row.outcome,
    ]  # fmt: skip


def _whole(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"
