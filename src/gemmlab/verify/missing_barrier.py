"""The place of a missing barrier, from the two lines of a race and the source between them."""

from __future__ import annotations

import re
from collections.abc import Callable

from gemmlab.core.hazard import Hazard
from gemmlab.core.hazard_source import source_text

_BARRIER = re.compile(r"\b(?:__syncthreads\w*|bar(?:rier)?\s*\.\s*\w*sync|\.sync|\w*arrive_and_wait|__syncwarp)\b")
_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def missing_barrier(hazard: Hazard, read: Callable[[str], str] = source_text) -> str:
    """Return where a barrier between the two accesses of a race in shared memory belongs; empty if that is unknown.

    There are two ways between the lines: down from the first to the second, and, in a loop, from the second round to
    the first. If the text of one way has a barrier, the other one lacks it; if neither has, the way down is named.
    """
    if hazard.space == "global" or not (hazard.line and hazard.other_line):
        return ""
    what = "__syncwarp()" if "__syncwarp" in hazard.message else "__syncthreads()"
    if hazard.other_file:
        return f"{what} between {hazard.file}:{hazard.line} and {hazard.other_file}:{hazard.other_line}"
    first, second = sorted((hazard.line, hazard.other_line))
    if first == second:
        return f"{what} before or after line {first}, which different threads execute"
    between = _without_comments(read(hazard.file)).split("\n")[first - 1 : second - 1]
    if any(map(_BARRIER.search, between)):
        return f"{what} after line {second}, before line {first} is reached again in the loop"
    return f"{what} between line {first} and line {second}"


def _without_comments(text: str) -> str:
    """Return the text with comments replaced by their line ends."""
    return _COMMENTS.sub(lambda found: "\n" * found[0].count("\n"), text)
