"""Words of messages: counts with their noun, and what a misspelt name may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str], others: str = "known", most: int = 3) -> str:
    """The end of an error message: what may have been meant, or else everything that is known, called `others`."""
    names = list(dict.fromkeys(known))
    near = get_close_matches(name, names, n=most)
    shown = [printable(one) for one in near or names]
    return f"did you mean {', '.join(shown)}?" if near else f"{others}: {', '.join(shown) or 'none'}"


def printable(text: str) -> str:
    """What a file says, without what would steer a terminal."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


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
