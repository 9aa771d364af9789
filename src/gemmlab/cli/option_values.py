"""Parsers of options that several commands have."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from gemmlab.core.errors import UsageError


def parse_config(texts: list[str]) -> dict[str, int]:
    """Return `{"MR": 12, "NR": 32}` for `["MR=12", "NR=32"]`.

    Raises `UsageError` for texts of another form, and for two different values of one parameter.
    """
    config: dict[str, int] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name) or not re.fullmatch(r"-?[0-9]{1,9}", value):
            raise UsageError(f"--config {text!r}: write NAME=VALUE, as in MR=12")
        if config.setdefault(name, int(value)) != int(value):
            raise UsageError(f"--config: {name} is {config[name]} and {int(value)}, but this is one configuration")
    return config


def parse_thread_count(text: str | None) -> int | None:
    """Parse a thread count; `None` stays `None`. Raises `UsageError` for anything but a whole number."""
    try:
        return None if text is None else int(text)
    except ValueError:
        raise UsageError(f"--threads {text!r}: not a whole number") from None


def seconds_of(text: str) -> float:
    """Return the seconds of a `--budget`: `60s`, `5m`, `1.5h`, or a number of seconds.

    Raises `UsageError` for other texts, and unless the time is above 0 and below 10 million seconds.
    """
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1.0)
    try:
        seconds = float(number) * unit
    except ValueError:
        seconds = -1.0
    if not 0.0 < seconds < 1e7:
        raise UsageError(f"--budget {text}: write a time as 60s, 5m or 1h, or a number of seconds")
    return seconds


def require_place(flag: str, path: Path) -> None:
    """Raise `UsageError`, which names the option `flag`, unless a file can be written at `path`.

    Commands call this first, so that a long run does not end without a place for its result.
    """
    if not path.resolve().parent.is_dir():
        raise UsageError(f"{flag} {path}: no folder {path.parent}")
    if path.is_dir():
        raise UsageError(f"{flag} {path}: is a folder; name a file")
    try:
        with tempfile.TemporaryFile(dir=path.resolve().parent):
            pass
    except OSError as error:
        raise UsageError(f"{flag} {path}: cannot write there ({error.strerror})") from None
