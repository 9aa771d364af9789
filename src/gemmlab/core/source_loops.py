"""The loops of a source text, by their lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_HEAD = re.compile(r"\b(?:(?:for|while)\s*\(|do\b)")
_BRACKETS = {"(": ")", "{": "}"}


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: its body is taken to be on the lines after `first`, up to `last`.

    `first` is the line of its `{`, or without braces that of its head.
    """

    first: int
    last: int
    braced: bool
    """False if the body is one statement without braces."""


def without_comments(text: str) -> str:
    """Return the text without comments, with the same line numbers."""
    return _COMMENTS.sub(lambda found: "\n" * found[0].count("\n"), text)


def loops_of(text: str) -> list[Loop]:
    """Return the loops of C++ text without comments, in the order of their heads; a loop without an end is left out."""
    found = []
    for head in _HEAD.finditer(text):
        start = head.end() if head[0] == "do" else _closing(text, head.end() - 1) + 1
        body = re.compile(r"\s*").match(text, start)
        at = len(text) if body is None or not start else body.end()
        braced = text[at : at + 1] == "{"
        end = _closing(text, at) if braced else text.find(";", at)
        if end >= 0:
            found.append(Loop(_line(text, at if braced else head.start()), _line(text, end), braced))
    return found


def innermost(loops: Iterable[Loop], first: int, last: int) -> Loop | None:
    """Return the smallest loop whose body has both lines; `None` if there is none."""
    around = [loop for loop in loops if loop.first < first and last <= loop.last]
    return min(around, key=lambda loop: loop.last - loop.first, default=None)


def _closing(text: str, at: int) -> int:
    """Return the place of the bracket that closes the one at `at`; -1 if nothing does."""
    opening, depth = text[at], 0
    for place in range(at, len(text)):
        depth += (text[place] == opening) - (text[place] == _BRACKETS[opening])
        if not depth:
            return place
    return -1


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
