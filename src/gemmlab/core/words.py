"""Helpers for the text of messages: counts with their noun, configurations, and suggestions for a misspelt name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

_FAINT = 0.3
"""Least similarity, from 0 to 1, of a name that is suggested if no name is near."""


def nearest(name: str, known: Iterable[str], others: str = "known", most: int = 3) -> str:
    """Return the end of an error message: at most `most` names similar to `name`, or else all known ones after
    `others`.
    """
    names = list(dict.fromkeys(known))
    near = get_close_matches(name, names, n=most)
    shown = [printable(one) for one in near or names]
    return f"did you mean {', '.join(shown)}?" if near else f"{others}: {', '.join(shown) or 'none'}"


def nearest_of_many(name: str, known: Iterable[str], command: str) -> str:
    """Return the end of an error message with the similar names and `command`, which prints all.

    It is for names that are too many for a message.
    """
    names = list(known)
    near = get_close_matches(name, names) or get_close_matches(name, names, cutoff=_FAINT)
    guess = f"did you mean {', '.join(map(printable, near))}? " if near else ""
    return f"{guess}{command} prints all {len(names)}"


def printable(text: str) -> str:
    """Return `text` with control characters escaped, safe to print on a terminal."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def printable_lines(text: str) -> str:
    """Return `text` with control characters escaped, except the ends of its lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def counted(number: int, one: str) -> str:
    """Return `"1 case"` or `"297 cases"`; `one` is the singular of a noun whose plural adds an s."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def sentence(text: str) -> str:
    """Return a text with a full stop at its end, if it has no other stop there."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def assignments(config: Mapping[str, object]) -> str:
    """Return a configuration as `"BM=64 BN=32"`."""
    return " ".join(f"{name}={value}" for name, value in config.items())


def chosen(config: Mapping[str, object]) -> str:
    """Return a configuration as `assignments` does, without its zeros, which mean a default or an absent feature."""
    return assignments({name: value for name, value in config.items() if value})


def shown(value: object) -> str:
    """Return `repr(value)`, or the type and bits of a whole number that is too long for `repr`."""
    try:
        return repr(value)
    except ValueError:
        size = f" of {value.bit_length():,} bits" if isinstance(value, int) else ""
        return f"a {type(value).__name__}{size}"
