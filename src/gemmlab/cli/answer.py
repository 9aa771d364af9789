"""The answer for machines: with `--json` a verb prints exactly one document, its own or that of its error."""

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
    """A verb's whole answer: the one document on standard output."""
    typer.echo(json.dumps(answer, indent=1, allow_nan=False))
    _answered.set(True)


@contextmanager
def notices() -> Iterator[None]:
    """A line on standard error for each `GemmlabDeprecationWarning`; other warnings as Python shows them."""
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
    """Print `error_document` of an error that ends a verb before its own document.

    The error goes on to whoever handles it. One that nobody expects prints nothing.
    """
    token = _answered.set(False)
    try:
        yield
    except Exception as error:
        if wanted and _is_told(error) and not _answered.get():
            print_json(error_document(error))
        raise
    finally:
        _answered.reset(token)


def error_document(error: Exception) -> dict[str, Any]:
    """`{"error": {"type", "message", "exit_code"}}`; with `"timed_out": true` and `progress` at a time limit."""
    facts = {"type": type(error).__name__, "message": error_message(error), "exit_code": exit_code(error)}
    if isinstance(error, TimeLimitError):
        return {"timed_out": True, "error": {**facts, "progress": dict(error.progress)}}
    return {"error": facts}


def error_message(error: Exception) -> str:
    """What a person is told."""
    if hasattr(error, "format_message"):
        return str(error.format_message())
    text = str(error) or type(error).__name__
    return f"not enough memory: {text}" if isinstance(error, MemoryError) else text


def exit_code(error: Exception) -> int:
    """What the command ends with."""
    return int(getattr(error, "exit_code", 2))


def _is_told(error: Exception) -> bool:
    # The parser's own errors are known by what they can do: typer brings its own copy of click or not, by version.
    return isinstance(error, (GemmlabError, MemoryError)) or hasattr(error, "format_message")
