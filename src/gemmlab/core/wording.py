"""Words with a number."""

from __future__ import annotations


def counted(number: int, one: str) -> str:
    """`"1 case"`, `"297 cases"`; `one` is a word whose plural ends with an s more."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"
