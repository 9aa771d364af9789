"""Where tables and progress go: tables to standard output, progress to standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

DEVICE_HELP = "Where to run: cpu, cuda[:N] (an NVIDIA GPU) or emulated[:sm_XX] (its machine code, without one)."
PIPE_WIDTH = 140
"""Columns where the output is not a terminal."""


def table_console() -> Console:
    """Standard output; wide where nobody folds it. Nothing printed on it is read as markup."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(width=width, markup=False, highlight=False, emoji=False)


def progress_console() -> Console:
    """Standard error, for what is gone once the answer is there."""
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def plain_table(headings: Sequence[str], texts: int) -> Table:
    """A table without lines; all columns but the first `texts` hold numbers."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for index, heading in enumerate(headings):
        table.add_column(Text(heading), justify="left" if index < texts else "right", overflow="fold")
    return table


def add_row(table: Table, cells: Sequence[str]) -> None:
    """Cells as they are: names come from the command line and out of files, and nothing in them is markup."""
    from rich.text import Text

    table.add_row(*(Text(cell) for cell in cells))
