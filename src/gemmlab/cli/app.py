"""The `gemmlab` command: finds one file per verb by its name (`*_cmd.py`) and turns errors into exit codes.

Exit codes: 0 fine, 1 wrong result or regression, 2 usage, 3 no such device, 130 interrupted.
"""

from __future__ import annotations

import pkgutil
import traceback
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import gemmlab
import gemmlab.cli
from gemmlab.cli.answer import error_message, exit_code, json_errors, notices
from gemmlab.core.errors import GemmlabError


class _Verbs(TyperGroup):
    """The group of all verbs. An error gives its exit code and a line on standard error; `--debug` adds a traceback.

    With a verb's `--json` the error is also printed as JSON on standard output, unless the verb has printed its own.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            with notices(), json_errors(wanted="--json" in ctx.args):
                return super().invoke(ctx)
        except (GemmlabError, MemoryError) as error:
            if ctx.params.get("debug"):
                typer.echo(traceback.format_exc(), err=True)
            typer.echo(f"gemmlab: {error_message(error)}", err=True)
            raise typer.Exit(exit_code(error)) from None


def _print_version(version: bool) -> None:
    if version:
        typer.echo(f"gemmlab {gemmlab.__version__}")
        raise typer.Exit


def _start(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Climb from a naive matrix multiplication to the hardware's limit, then use the result."""


def build_app() -> typer.Typer:
    """Return the application with every verb. A verb's file defines `register(app)`."""
    app = typer.Typer(
        cls=_Verbs, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    app.callback()(_start)
    for module in pkgutil.iter_modules(gemmlab.cli.__path__):
        if module.name.endswith("_cmd"):
            import_module(f"gemmlab.cli.{module.name}").register(app)
    return app


def main() -> None:
    """Entry point of the `gemmlab` command."""
    build_app()(prog_name="gemmlab")
