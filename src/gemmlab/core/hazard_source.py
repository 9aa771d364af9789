"""Add to hazards the source text of their lines, and the name of the array that they access."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from gemmlab.core.hazard import Hazard

_MOST = 80
"""Most characters of a line that are shown."""
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SUBSCRIPTED = re.compile(r"([A-Za-z_]\w*)\s*\[")
_SHARED = re.compile(r"__shared__\b([^;{}]*);")
_ASM = re.compile(r"\b(?:asm|__asm__)\b\s*(?:volatile|__volatile__)?\s*\(")
_ATTRIBUTES = re.compile(r"\([^()]*\)")


def with_source(hazards: Iterable[Hazard], texts: Mapping[str, str] | None = None) -> tuple[Hazard, ...]:
    """Return hazards with the text of their lines and the name of the array, as far as these are known.

    `texts` has sources by the file names in the hazards; any other file is read. The array is known if the lines of the
    hazard have only one such name in common: for shared memory that of a `__shared__` variable of the file, or else a
    name with a subscript; for global memory any other name with a subscript. Otherwise `Hazard.array` stays as it is.
    """
    sources: dict[str, str] = dict(texts or {})
    return tuple(_described(hazard, sources) for hazard in hazards)


def _described(hazard: Hazard, sources: dict[str, str]) -> Hazard:
    if not hazard.line:
        return hazard
    files = hazard.file, hazard.other_file or hazard.file
    text, other = (
        _text_of(sources, file, number) for file, number in zip(files, (hazard.line, hazard.other_line), strict=True)
    )
    array = _array(
        hazard.space, "".join(sources[file] for file in files), [text, other] if hazard.other_line else [text]
    )
    mentions = tuple(
        replace(each, text=_short(_text_of(sources, each.file, each.line))) if each.line else each
        for each in hazard.mentions
    )
    return replace(hazard, text=_short(text), other_text=_short(other), array=array or hazard.array, mentions=mentions)


def shared_extents(source: str) -> dict[str, str]:
    """Return the `__shared__` variables that `source` declares, each with its extents as written: `{"As": "[16][8]"}`.

    A variable that is no array has empty extents.
    """
    found = {}
    for declared in _SHARED.findall(source):
        for part in _ATTRIBUTES.sub("", declared).split(","):
            before, bracket, extents = part.partition("[")
            if names := _NAME.findall(before):
                found[names[-1]] = (bracket + extents).strip()
    return found


def line_text(file: str, number: int, texts: Mapping[str, str] | None = None) -> str:
    """Return the text of line `number` (from 1) of a file, shortened as for hazards; empty if it cannot be read.

    `texts` has sources by file name; any other file is read.
    """
    return _short(_text_of(dict(texts or {}), file, number))


def is_inline_ptx(text: str) -> bool:
    """Return whether the text of a line contains the start of an `asm` statement."""
    return _ASM.search(text) is not None


def _text_of(sources: dict[str, str], file: str, number: int) -> str:
    """Return the text of a line, stripped; empty if there is no such line.

    A file that `sources` lacks is read and added to it. If the line starts an `asm` statement without its first string,
    the line with that string is appended.
    """
    if file not in sources:
        sources[file] = source_text(file)
    lines = sources[file].splitlines()
    if not 0 < number <= len(lines):
        return ""
    text = lines[number - 1].strip()
    if is_inline_ptx(text) and '"' not in text:
        rest = next((line.strip() for line in lines[number:] if '"' in line), "")
        text += rest
    return text


def source_text(file: str) -> str:
    """Return the text of a file; empty if it cannot be read."""
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return ""


def _array(space: str, source: str, lines: list[str]) -> str:
    shared = set(shared_extents(source))
    lines = [_STRING.sub("", line) for line in lines]
    subscripted = set.intersection(*(set(_SUBSCRIPTED.findall(line)) for line in lines))
    if space == "shared":
        named = shared.intersection(*(_NAME.findall(line) for line in lines)) or subscripted
    else:
        named = subscripted - shared if space == "global" else set()
    return named.pop() if len(named) == 1 else ""


def _short(line: str) -> str:
    return line if len(line) <= _MOST else f"{line[: _MOST - 3]}..."
