"""Where tables and progress go: tables to standard output, progress to standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

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
