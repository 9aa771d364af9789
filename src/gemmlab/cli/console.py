"""Consoles for tables, on standard output, and for progress, on standard error."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gemmlab.core.words import printable_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

DEVICE_HELP = "Where to run: cpu, cuda[:N] (an NVIDIA GPU) or emulated[:sm_90] (GPU code on the CPU; sm_75 to sm_90a)."
_ANY_WIDTH = 1 << 16
PIPE_WIDTH = 140
"""Width in columns when the output is not a terminal."""
REDRAW_S = 0.3
"""Least time in seconds between two drawings of the progress on a terminal."""


def table_console() -> Console:
    """Return a console on standard output. Its width is the terminal's; without a terminal `COLUMNS` or `PIPE_WIDTH`.

    A table wider than the console is printed whole, and a line on standard error says so: no column is cut. Texts are
    not parsed as markup. Control characters and unpaired surrogates, which records may contain, are escaped.
    """
    from rich.console import Console
    from rich.table import Table

    class PlainConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(printable_lines(text), **options)

        def on_broken_pipe(self) -> None:
            # The command line sets the exit code; rich would end with 1, as for a wrong result.
            raise BrokenPipeError

        def print(self, *objects: Any, **options: Any) -> None:
            tables = [each for each in objects if isinstance(each, Table)]
            room = self.options.update(width=_ANY_WIDTH)
            least = max((self.measure(each, options=room).minimum for each in tables), default=0)
            own = self.width
            if least > own:
                progress_console().print(f"The terminal has {own} columns; the table below needs {least}.")
                self.width = least
            try:
                super().print(*objects, **options)
            finally:
                self.width = own

    width = None if sys.stdout.isatty() else _stated_width() or PIPE_WIDTH
    return PlainConsole(width=width, markup=False, highlight=False, emoji=False)


def _stated_width() -> int:
    """Return the width in columns from the environment variable `COLUMNS`; 0 if it is unset or no number."""
    stated = os.environ.get("COLUMNS", "")
    return int(stated) if stated.isascii() and stated.isdigit() else 0


def progress_console() -> Console:
    """Return a console on standard error, for progress and remarks, so that standard output has only the answer."""
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def plain_table(headings: Sequence[str], texts: int) -> Table:
    """Return a table without lines; the first `texts` columns hold text, the others numbers, aligned right."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for index, heading in enumerate(headings):
        table.add_column(Text(printable_lines(heading)), justify="left" if index < texts else "right", overflow="fold")
    return table


def add_row(table: Table, cells: Sequence[str]) -> None:
    """Add a row of plain text. Cells are not parsed as markup, since names in them come from users and files; control
    characters are escaped.
    """
    from rich.text import Text

    table.add_row(*(Text(printable_lines(cell)) for cell in cells))


def seldom(
    show: Callable[[str, int, int], object], seconds: float, last: float = -math.inf
) -> Callable[[str, int, int], None]:
    """Return a function of a text, the steps done and those in all. It calls `show` with them if `seconds` have gone by
    since it last called `show`; before the first such call, since the time `last` (of `time.monotonic`).

    Progress is drawn seldom, because a thread that draws during a turn would disturb the measurement.
    """

    def report(text: str, done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= seconds:
            last = time.monotonic()
            show(text, done, total)

    return report
