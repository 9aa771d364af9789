"""Warnings that point to the line of the user's file, and those of usage that the next version will not accept."""

from __future__ import annotations

import inspect
import sys
import warnings
from pathlib import Path
from types import FrameType

_PACKAGE = Path(__file__).parent.parent
_messages = set[str]()
"""Messages that `warn_once` has already issued in this process."""


class GemmlabDeprecationWarning(DeprecationWarning):
    """Warning of deprecated usage. The command line always prints it; elsewhere Python's filters apply."""


def warn_caller(message: str) -> None:
    """Issue a `RuntimeWarning` at the line outside gemmlab that called into it."""
    # The argument `skip_file_prefixes` would do this, but needs Python 3.12.
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    level = outermost = 2
    while frame is not None:
        if _PACKAGE in Path(frame.f_code.co_filename).parents:
            outermost = level
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RuntimeWarning, stacklevel=outermost + 1)


def warn_once(message: str) -> None:
    """Issue a `GemmlabDeprecationWarning` at the caller's line, once per process for each message."""
    if message in _messages:
        return
    _messages.add(message)
    warnings.warn(message, GemmlabDeprecationWarning, stacklevel=_outside())


def _outside() -> int:
    """Return the stack level, relative to `warn_once`, of the nearest caller outside gemmlab."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(str(_PACKAGE)):
        level, frame = level + 1, frame.f_back
    return level
