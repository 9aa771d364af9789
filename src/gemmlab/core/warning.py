"""Warnings that name the line in a user's file, however deep within this package their cause lies."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import FrameType

_PACKAGE = Path(__file__).parent.parent


def warn_caller(message: str) -> None:
    """A `RuntimeWarning` at the line that called into this package."""
    # `skip_file_prefixes` is for Python 3.12 and later.
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    level = outermost = 2
    while frame is not None:
        if _PACKAGE in Path(frame.f_code.co_filename).parents:
            outermost = level
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RuntimeWarning, stacklevel=outermost + 1)
