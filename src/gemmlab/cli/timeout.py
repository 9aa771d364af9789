"""`--timeout`: limit the time of a command, or of each kernel that it checks, in seconds."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from gemmlab.cli.answer import error_document, error_message, print_json
from gemmlab.core.errors import TimeLimitError
from gemmlab.core.time_limit import TimeLimit, require_seconds, time_limit

DEFAULT_S = 600.0
GRACE_S = 1.0
"""Seconds from the limit to the end of the process, if the running code cannot be interrupted."""

TimeoutFlag = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", help="Stop after this time, report the progress, exit with 1.")
]


def error_answer(*, as_json: bool) -> Callable[[TimeLimitError], None]:
    """Return the `overdue` function for `limited` of a command without partial results: it prints the error."""

    def answer(error: TimeLimitError) -> None:
        if as_json:
            print_json(error_document(error))
        typer.echo(f"gemmlab: {error_message(error)}", err=True)

    return answer


@contextmanager
def limited(seconds: float, overdue: Callable[[TimeLimitError], None]) -> Iterator[TimeLimit]:
    """Limit the time of the block: launches and long loops within it raise `TimeLimitError` after `seconds`.

    Code that cannot be interrupted (compiled CPU code, NumPy, a compiler, a GPU driver) gets `GRACE_S` more seconds;
    then another thread calls `overdue`, which prints the answer, and ends the process with exit code 1.
    """
    require_seconds("--timeout", seconds)
    ended = threading.Lock()

    def end() -> None:
        if ended.acquire(blocking=False):
            assert limit is not None  # noqa: S101 - seconds were given
            overdue(limit.error("gemmlab", "the running code cannot be interrupted"))
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(TimeLimitError.exit_code)

    with time_limit(seconds) as limit:
        assert limit is not None  # noqa: S101 - seconds were given
        watchdog = threading.Timer(min(limit.left + GRACE_S, threading.TIMEOUT_MAX), end)
        watchdog.daemon = True
        watchdog.start()
        try:
            yield limit
        finally:
            watchdog.cancel()
            # If the watchdog has begun to answer, wait here until it ends the process.
            ended.acquire()
