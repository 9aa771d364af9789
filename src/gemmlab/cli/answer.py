"""Print a command's answer: with `--json` one JSON document, the answer or the error; with `--csv` the table's rows."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Annotated, Any, Protocol

import typer

from gemmlab.core.errors import GemmlabError, TimeLimitError, UsageError
from gemmlab.core.log import LOG
from gemmlab.core.warning import GemmlabDeprecationWarning

CsvFlag = Annotated[bool, typer.Option("--csv", help="Print the table's rows as comma-separated values.")]

_answered: ContextVar[bool] = ContextVar("_answered", default=False)


def print_json(answer: Any) -> None:
    """Print `answer` as JSON on standard output, and remember that the command has answered (for `json_errors`)."""
    typer.echo(json.dumps(answer, indent=1, allow_nan=False))
    _answered.set(True)


class Form(Enum):
    """The form of a command's answer."""

    TEXT, JSON, CSV = "text", "json", "csv"


class Answer(Protocol):
    """An answer that can be printed in every form but text."""

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values."""

    def to_csv(self) -> str:
        """Return the answer as comma-separated values, with a line feed at the end."""


def answer_form(*, as_json: bool, as_csv: bool) -> Form:
    """Return the form that the flags request, text without a flag. Raises `UsageError` if both are set."""
    if as_json and as_csv:
        raise UsageError("--json, --csv: name one of them")
    return Form.JSON if as_json else Form.CSV if as_csv else Form.TEXT


def print_document(answer: Answer, form: Form) -> bool:
    """Print the answer as JSON or CSV and return True; if the form is text, print nothing and return False."""
    if form is Form.JSON:
        print_json(answer.to_json())
    elif form is Form.CSV:
        print_csv(answer.to_csv())
    return form is not Form.TEXT


def print_csv(text: str) -> None:
    """Print comma-separated values; `text` already ends with a line feed."""
    typer.echo(text, nl=False)


class _Lines(logging.Handler):
    """A handler that prints each message as a line on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(record.getMessage(), err=True)


@contextmanager
def notices() -> Iterator[None]:
    """Within the block, print each notice (`core.log`) and each `GemmlabDeprecationWarning` on standard error.

    Python shows other warnings as usual.
    """
    usual = warnings.showwarning
    logger, handler = LOG, _Lines(logging.INFO)
    level = logger.level

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, GemmlabDeprecationWarning):
            typer.echo(f"gemmlab: {message}", err=True)
        else:
            usual(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", GemmlabDeprecationWarning)
        warnings.showwarning = show
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)


@contextmanager
def json_errors(*, wanted: bool) -> Iterator[None]:
    """If `wanted`, print the `error_document` of an error that ends the block, unless the block called `print_json`.

    Every error is raised again. An unexpected exception, which is a bug, prints nothing here.
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
    """Return `{"error": {"type", "message", "exit_code"}}`.

    After a timeout also `"timed_out": true`, and `progress` in the error.
    """
    facts = {"type": type(error).__name__, "message": error_message(error), "exit_code": exit_code(error)}
    if isinstance(error, TimeLimitError):
        return {"timed_out": True, "error": {**facts, "progress": dict(error.progress)}}
    return {"error": facts}


def error_message(error: Exception) -> str:
    """Return an error's message as the command line shows it; the name of its type if it has no message."""
    if hasattr(error, "format_message"):
        return str(error.format_message())
    text = str(error) or type(error).__name__
    return f"not enough memory: {text}" if isinstance(error, MemoryError) else text


def exit_code(error: Exception) -> int:
    """Return the exit code of a command that ends with this error: the error's `exit_code`, or 2."""
    return int(getattr(error, "exit_code", 2))


def _has_exit_code(error: Exception) -> bool:
    # The parser's errors are recognized by a method: some versions of typer have their own copy of click's classes.
    return isinstance(error, (GemmlabError, MemoryError)) or hasattr(error, "format_message")
