"""Notices of what this version still takes and the next one does not."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1])
_given = set[str]()
"""Notices that this process has given."""


class GemmlabDeprecationWarning(DeprecationWarning):
    """Something of an earlier version is in use. The command line prints it; Python's own filters apply elsewhere."""


def warn_once(message: str) -> None:
    """A `GemmlabDeprecationWarning` at the caller's own line, once a process for each message."""
    if message in _given:
        return
    _given.add(message)
    warnings.warn(message, GemmlabDeprecationWarning, stacklevel=_outside())


def _outside() -> int:
    """The stack level, seen from `warn_once`, of the nearest caller outside the package."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
