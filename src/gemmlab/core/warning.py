"""Warnings that point to the line in the user's file, at any depth of calls within this package."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import FrameType

_PACKAGE = Path(__file__).parent.parent


def warn_caller(message: str) -> None:
    """Issue a `RuntimeWarning` at the line outside this package that called into it."""
    # The argument `skip_file_prefixes` would do this, but needs Python 3.12.
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    level = outermost = 2
    while frame is not None:
        if _PACKAGE in Path(frame.f_code.co_filename).parents:
            outermost = level
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RuntimeWarning, stacklevel=outermost + 1)
