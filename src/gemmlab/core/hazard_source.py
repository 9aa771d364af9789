"""The source of the lines that hazards name, and the array that they access."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from gemmlab.core.hazard import Hazard

_MOST = 80
"""Characters of a line that are shown."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_SUBSCRIPTED = re.compile(r"([A-Za-z_]\w*)\s*\[")
_SHARED = re.compile(r"__shared__\b([^;{}]*);")
_ATTRIBUTES = re.compile(r"\([^()]*\)")


def with_source(hazards: Iterable[Hazard], texts: Mapping[str, str] | None = None) -> tuple[Hazard, ...]:
    """Return hazards with the text of their lines and the name of the array, where these are known.

    `texts` has sources by the file names in the hazards; any other file is read. The array is known if the lines name
    only one: for shared memory a `__shared__` variable of the file, else a name with a subscript.
    """
    sources: dict[str, str] = dict(texts or {})
    return tuple(_described(hazard, sources) for hazard in hazards)


def _described(hazard: Hazard, sources: dict[str, str]) -> Hazard:
    if not hazard.line:
        return hazard
    files = hazard.file, hazard.other_file or hazard.file
    for file in files:
        if file not in sources:
            sources[file] = source_text(file)
    text, other = (
        _line(sources[file], number) for file, number in zip(files, (hazard.line, hazard.other_line), strict=True)
    )
    array = _array(
        hazard.space, "".join(sources[file] for file in files), [text, other] if hazard.other_line else [text]
    )
    return replace(hazard, text=_short(text), other_text=_short(other), array=array)


def shared_extents(source: str) -> dict[str, str]:
    """Return the `__shared__` variables that a text declares, each with its extents as written: `{"As": "[16][8]"}`."""
    found = {}
    for declared in _SHARED.findall(source):
        for part in _ATTRIBUTES.sub("", declared).split(","):
            before, bracket, extents = part.partition("[")
            if names := _NAME.findall(before):
                found[names[-1]] = (bracket + extents).strip()
    return found


def _line(source: str, number: int) -> str:
    lines = source.splitlines()
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def source_text(file: str) -> str:
    """Return the text of a file; empty for one that cannot be read."""
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return ""


def _array(space: str, source: str, lines: list[str]) -> str:
    shared = set(shared_extents(source))
    subscripted = set.intersection(*(set(_SUBSCRIPTED.findall(line)) for line in lines))
    if space == "shared":
        named = shared.intersection(*(_NAME.findall(line) for line in lines)) or subscripted
    else:
        named = subscripted - shared if space == "global" else set()
    return named.pop() if len(named) == 1 else ""


def _short(line: str) -> str:
    return line if len(line) <= _MOST else f"{line[: _MOST - 3]}..."
