"""Words with a number, and values in words."""

from __future__ import annotations


def counted(number: int, one: str) -> str:
    """`"1 case"`, `"297 cases"`; `one` is a word whose plural ends with an s more."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def shown(value: object) -> str:
    """`repr`, but where that refuses (whole numbers of thousands of digits) what kind of value it is."""
    try:
        return repr(value)
    except ValueError:
        size = f" of {value.bit_length():,} bits" if isinstance(value, int) else ""
        return f"a {type(value).__name__}{size}"
