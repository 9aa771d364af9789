"""The places that state facts about a CUDA kernel: a comment in its file, a `.toml` file beside it, and flags.

    /* gemmlab
    summary = "one thread an element"
    grid = "ceil_div(M, BM) * ceil_div(N, BN)"
    */

The text between the first line and the closing one is TOML.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.core.words import nearest

MOST_CHARACTERS = 20_000
_OPENING = re.compile(r"^[ \t]*/\*[ \t]*gemmlab[ \t]*\r?$", re.MULTILINE)
_TOML_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)$")
_LARGEST = 2**63
_LONG_NUMBER = re.compile(r"[0-9][0-9A-Fa-fxob_]{18,}")
_FLAGS = {"options": "-I, -D or --option"}
"""Keys whose flags have other names."""
KEYS = (
    "summary", "idea", "source", "op", "kernel", "after", "branch", "aliases", "step", "arch", "precision", "params",
    "tune", "search", "require", "grid", "threads", "smem_bytes", "steps", "tiles", "again", "workspace", "tickets",
    "roundings", "in_order", "align", "always_reads", "transposes", "args", "options", "expect", "phases", "early",
    "maps", "exercise", "written_anew", "let", "cooperative", "constants",
)  # fmt: skip
"""All keys that a header, a `.toml` file or flags can state about a kernel."""


@dataclass(frozen=True, slots=True)
class Statement:
    """The facts stated in one place, by key; `text` is their TOML."""

    origin: str
    """The file of the statement, as messages name it; empty for flags."""
    values: Mapping[str, Any]
    text: str = ""
    first_line: int = 1
    """The line of the file on which `text` begins."""

    def where(self, key: str, part: str) -> str:
        """Return the position of a key that is stated here: `mine.cu:7: grid`, or `--grid` for a flag.

        The line is the first from the key's on that contains `part`, or the key's own.
        """
        if not self.origin:
            return _FLAGS.get(key, f"--{key.replace('_', '-')}")
        lines = self.text.split("\n")
        opens = re.compile(rf"\s*\[*\s*{re.escape(key)}\b")
        at = next((index for index, line in enumerate(lines) if opens.match(line)), 0)
        at = next((index for index in range(at, len(lines)) if part in lines[index]), at)
        return f"{self.origin}:{self.first_line + at}: {key}"


@dataclass(frozen=True, slots=True)
class HeaderValues:
    """The values by key of several statements about a kernel; if several have a key, the last one counts."""

    name: str
    """Name of the kernel's file, as messages have it."""
    layers: tuple[Statement, ...]

    def get(self, key: str) -> Any:
        """Return the value of a key; `None` if no statement has it."""
        layer = self._layer(key)
        return None if layer is None else layer.values[key]

    def apart(self, key: str) -> list[HeaderValues]:
        """Return each statement that has a key by itself, the earliest first: of `options` all count."""
        return [HeaderValues(self.name, (layer,)) for layer in self.layers if key in layer.values]

    def error(self, key: str, message: str, part: object = "") -> UsageError:
        """Return an error about a key, or about one part of its value, that begins with its position."""
        return UsageError(f"{self.where(key, part)}: {message}")

    def where(self, key: str, part: object = "") -> str:
        """Return the position of a key, or of one part of its value: `mine.cu:7: grid`; `mine.cu: grid` if it is not
        stated.
        """
        layer = self._layer(key)
        return f"{self.name}: {key}" if layer is None else layer.where(key, str(part))

    def _layer(self, key: str) -> Statement | None:
        return next((layer for layer in reversed(self.layers) if key in layer.values), None)


def read_header(origin: str, text: str) -> Statement | None:
    """Return the facts in the `/* gemmlab` comment of a kernel file; `None` if it has none.

    `origin` is the file's name in messages. `UsageError` names file and line, and a key that does not exist.
    """
    openings = list(_OPENING.finditer(text))
    if not openings:
        return None
    if len(openings) > 1:
        line = text.count("\n", 0, openings[1].start()) + 1
        raise UsageError(f"{origin}:{line}: a second `/* gemmlab` comment; one file is one kernel")
    start = openings[0].end() + 1
    first_line = text.count("\n", 0, start) + 1
    end = text.find("*/", start)
    if end < 0:
        raise UsageError(f"{origin}:{first_line - 1}: the `/* gemmlab` comment is not closed")
    return _read_toml(origin, text[start:end], first_line)


def read_toml(path: Path) -> Statement:
    """Return the facts in a `.toml` file. `UsageError` names the file, and the line of a fault in its text."""
    return _read_toml(path.name, read_text(path), 1)


def from_flags(values: Mapping[str, Any]) -> Statement:
    """Return the facts stated by flags; a flag that is `None` states nothing. `UsageError` for an unknown key."""
    stated = {key: value for key, value in values.items() if value is not None}
    if unknown := sorted(set(stated) - set(KEYS)):
        raise UsageError(f"{unknown[0]!r} is not a fact of kernels ({', '.join(KEYS)})")
    return Statement("", stated)


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, without a byte order mark; `UsageError` if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except ValueError as error:
        raise UsageError(f"{path}: no file can have this name: {error}") from error


def _read_toml(origin: str, text: str, first_line: int) -> Statement:
    if len(text) > MOST_CHARACTERS:
        raise UsageError(f"{origin}:{first_line}: {len(text)} characters of TOML; at most {MOST_CHARACTERS}")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{origin}:{_toml_error(str(error), text, first_line)}") from None
    except ValueError:
        # Python refuses decimal numbers with this many digits.
        raise _too_large(origin, text, first_line) from None
    except RecursionError:
        raise UsageError(f"{origin}:{first_line}: TOML nested too deeply") from None
    if any(abs(number) >= _LARGEST for number in _integers(values)):
        raise _too_large(origin, text, first_line)
    statement = Statement(origin, values, text, first_line)
    for key in values:
        if key not in KEYS:
            raise UsageError(f"{statement.where(key, '')}: no such key; {nearest(key, KEYS, most=1)}")
    return statement


def _integers(value: object) -> Iterator[int]:
    """Yield all whole numbers in a value read from TOML, booleans included."""
    if isinstance(value, int):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _integers(part)


def _too_large(origin: str, text: str, first_line: int) -> UsageError:
    number = _LONG_NUMBER.search(text)
    line = first_line + (text.count("\n", 0, number.start()) if number else 0)
    return UsageError(f"{origin}:{line}: a whole number that does not fit in 64 bits")


def _toml_error(message: str, text: str, first_line: int) -> str:
    """Return the TOML parser's message as `LINE: column C: ...`, where LINE is counted in the file."""
    place = _TOML_PLACE.search(message)
    if place is None:
        last = first_line + text.rstrip().count("\n")
        return f"{last}: {message.replace(' (at end of document)', '')} at the end of the TOML"
    line = text.split("\n")[int(place[1]) - 1].strip()
    return f"{first_line + int(place[1]) - 1}: column {place[2]}: {message[: place.start()]} in {line!r}"
