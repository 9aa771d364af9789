"""Print JSON answers: with `--json` a command prints exactly one document, its own or that of its error."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import typer

from gemmlab.core.deprecation import GemmlabDeprecationWarning
from gemmlab.core.errors import GemmlabError, TimeLimitError

_answered: ContextVar[bool] = ContextVar("_answered", default=False)


def print_json(answer: Any) -> None:
    """Print a command's answer as the one JSON document on standard output."""
    typer.echo(json.dumps(answer, indent=1, allow_nan=False))
    _answered.set(True)


@contextmanager
def notices() -> Iterator[None]:
    """Print a line on standard error for each `GemmlabDeprecationWarning`; Python shows other warnings as usual."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, GemmlabDeprecationWarning):
            typer.echo(f"gemmlab: {message}", err=True)
        else:
            usual(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", GemmlabDeprecationWarning)
        warnings.showwarning = show
        yield


@contextmanager
def json_errors(*, wanted: bool) -> Iterator[None]:
    """If `wanted`, print `error_document` for an error that ends a command before its own document, and re-raise it.

    Unexpected exceptions, which are bugs, print nothing here.
    """
    token = _answered.set(False)
    try:
        yield
    except Exception as error:
        if wanted and _has_exit_code(error) and not _answered.get():
            print_json(error_document(error))
        raise
    finally:
        _answered.reset(token)


def error_document(error: Exception) -> dict[str, Any]:
    """Return `{"error": {"type", "message", "exit_code"}}`; after a timeout also `"timed_out": true` and `progress`."""
    facts = {"type": type(error).__name__, "message": error_message(error), "exit_code": exit_code(error)}
    if isinstance(error, TimeLimitError):
        return {"timed_out": True, "error": {**facts, "progress": dict(error.progress)}}
    return {"error": facts}


def error_message(error: Exception) -> str:
    """Return an error's message as the command line shows it."""
    if hasattr(error, "format_message"):
        return str(error.format_message())
    text = str(error) or type(error).__name__
    return f"not enough memory: {text}" if isinstance(error, MemoryError) else text


def exit_code(error: Exception) -> int:
    """Return the exit code of the command after this error."""
    return int(getattr(error, "exit_code", 2))


def _has_exit_code(error: Exception) -> bool:
    # The parser's errors are recognized by a method: some versions of typer have their own copy of click's classes.
    return isinstance(error, (GemmlabError, MemoryError)) or hasattr(error, "format_message")
