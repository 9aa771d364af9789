"""The extension of IPython and Jupyter: `%load_ext gemmlab` defines the cell magic `%%cuda`."""

from __future__ import annotations

from typing import Any

from gemmlab.notebook.cell_options import completions
from gemmlab.notebook.cuda_cell import run_cell

MAGIC = "cuda"


def load_ipython_extension(ipython: Any) -> None:
    """Define `%%cuda` in an IPython shell, and complete its options."""
    from IPython.core.error import UsageError as ShellError

    from gemmlab.core.errors import GemmlabError

    def cuda(line: str, cell: str) -> Any:
        try:
            return run_cell(line, cell, ipython.user_ns)
        except GemmlabError as error:
            # The shell shows this error as a message, without a traceback through this package.
            raise ShellError(str(error)) from error

    def complete(_shell: Any, event: Any) -> list[str]:
        return completions(event.symbol)

    cuda.__doc__ = run_cell.__doc__
    ipython.register_magic_function(cuda, "cell", MAGIC)
    ipython.set_hook("complete_command", complete, str_key=f"%%{MAGIC}")
