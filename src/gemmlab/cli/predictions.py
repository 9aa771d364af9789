"""Print predicted times, marked as predicted: of one explained kernel, or of a ladder that the emulator counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from gemmlab.analysis.model.quoted_prediction import QuotedPrediction
    from gemmlab.instruments.predicted_rows import PredictedRow


def print_predictions(rows: Sequence[PredictedRow], notes: Sequence[str]) -> None:
    """Print a table of predicted times under a heading that says so, then how reliable they are, and the notes."""
    from rich.table import Table
    from rich.text import Text

    from gemmlab.cli.console import table_console
    from gemmlab.core.numerals import plain
    from gemmlab.results.climb_rows import digits, short_size

    console = table_console()
    if rows:
        console.print(f"\nPredicted, not measured: {rows[0].gpu} at {short_size(rows[0].size)}, cold caches")
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading in ("", "predicted\nms", f"predicted\n{rows[0].unit if rows else ''}", "mostly"):
        table.add_column(Text(heading), justify="left" if heading in ("", "mostly") else "right")
    for row in rows:
        table.add_row(*map(Text, (row.name, digits(row.time_us / 1e3), plain(row.speed, 3), row.mostly)))
    if rows:
        console.print(table)
    for text in dict.fromkeys(row.reliability for row in rows):
        names = [row.name for row in rows if row.reliability == text]
        few = "" if len(names) > len(rows) // 2 else f"{', '.join(names)}: "
        console.print(f"  {few}{text}")
    for note in notes:
        console.print(f"  note: {note}")


def print_quoted_prediction(console: Console, kernel: str, quoted: QuotedPrediction | str) -> None:
    """Print the predicted time of one kernel and its parts; a text `quoted` is the reason why there is none."""
    from rich.text import Text

    from gemmlab.core.numerals import duration, plain
    from gemmlab.results.climb_rows import percent

    if isinstance(quoted, str):
        console.print(Text(f"\nNo time is predicted for {kernel}: {quoted}"))
        return
    found = quoted.prediction
    console.print(Text(f"\n{kernel}: predicted for {found.gpu} at {quoted.size}, not measured", style="bold"))
    total = f"{duration(found.time_us)}, {plain(quoted.speed)} {quoted.unit}"
    waves = f"blocks an SM: {found.resident}, waves: {found.waves:.3g}"
    console.print(Text(f"  {total}; {waves}; mostly {found.binds}"))
    for name, time_us in found.terms.items():
        if time_us > 0:
            console.print(Text(f"  {plain(time_us, 3):>9} us  {percent(time_us / found.time_us):>6}  {name}"))
    console.print(Text(f"  {quoted.reliability}"))
