"""Deprecation warnings: for usage that this version accepts and the next one will not."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1])
_messages = set[str]()
"""Messages that this process has already issued."""


class GemmlabDeprecationWarning(DeprecationWarning):
    """Warning of deprecated usage. The command line always prints it; elsewhere Python's filters apply."""


def warn_once(message: str) -> None:
    """Issue a `GemmlabDeprecationWarning` at the caller's line, once per process for each message."""
    if message in _messages:
        return
    _messages.add(message)
    warnings.warn(message, GemmlabDeprecationWarning, stacklevel=_outside())


def _outside() -> int:
    """Return the stack level, relative to `warn_once`, of the nearest caller outside the package."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
