"""The `gemmlab` command: takes its verbs from the files `*_cmd.py`, one from each, and turns errors into exit codes.

Exit codes: 0 fine, 1 wrong result, regression or time limit, 2 usage and all other errors, 3 no such device, 130
interrupted, 141 if the reader of the output has closed it (`gemmlab list | head -1`), as with other programs.
"""

from __future__ import annotations

import os
import pkgutil
import sys
import traceback
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import gemmlab
import gemmlab.cli
from gemmlab.cli.answer import error_message, exit_code, json_errors, notices
from gemmlab.cli.help_examples import epilog
from gemmlab.core.errors import GemmlabError

_CLOSED_PIPE = 128 + 13
"""The exit code that a shell reports for a program that signal 13, SIGPIPE, ended."""


class _Verbs(TyperGroup):
    """The group of all verbs.

    A `GemmlabError` or `MemoryError` of a verb ends the command with the error's exit code and prints its message on
    standard error; `--debug` adds a traceback. With the verb's `--json` the error is also printed as JSON on standard
    output, unless the verb has already printed its answer. A closed pipe ends the command, too. The parser's exceptions
    are left to typer; all others are bugs and are not caught.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            with notices(), json_errors(wanted="--json" in ctx.args):
                result = super().invoke(ctx)
                sys.stdout.flush()
                return result
        except BrokenPipeError:
            # The interpreter flushes once more when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(_CLOSED_PIPE) from None
        except (GemmlabError, MemoryError) as error:
            if ctx.params.get("debug"):
                typer.echo(traceback.format_exc(), err=True)
            typer.echo(f"gemmlab: {error_message(error)}", err=True)
            raise typer.Exit(exit_code(error)) from None
        finally:
            _name_broken_kernels()


def _name_broken_kernels() -> None:
    """Print a line on standard error for each invalid kernel file; nothing if the command has not read the catalog."""
    catalog = sys.modules.get("gemmlab.kernels.catalog")
    for reason in catalog.noted_broken() if catalog else ():
        typer.echo(f"gemmlab: left out: {reason}", err=True)


def _print_version(version: bool) -> None:
    if version:
        typer.echo(f"gemmlab {gemmlab.__version__}")
        raise typer.Exit


def _ask_for_compilation(compiled: bool) -> None:
    if compiled:
        # Worker processes inherit it.
        os.environ["GEMMLAB_COMPILE"] = "1"


def _start(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    compiled: Annotated[
        bool,
        typer.Option(
            "--compile", callback=_ask_for_compilation, help="Compile GPU kernels; run no machine code of the package."
        ),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Climb from a naive matrix multiplication to the hardware's limit, then use the result."""


def build_app() -> typer.Typer:
    """Return the application with every verb. A verb's file defines `register(app)`."""
    app = typer.Typer(
        cls=_Verbs, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip
    app.callback()(_start)
    for module in pkgutil.iter_modules(gemmlab.cli.__path__):
        if module.name.endswith("_cmd"):
            import_module(f"gemmlab.cli.{module.name}").register(app)
    for command in app.registered_commands:
        command.epilog = epilog(command.name or "")
    return app


def main() -> None:
    """Run the command that `sys.argv` names, and exit with its exit code."""
    build_app()(prog_name="gemmlab")
