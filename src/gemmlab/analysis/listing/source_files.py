"""The source files of a listing, with the lines that are shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from gemmlab.analysis.listing.code import Code

_AROUND = 4
"""Lines shown before and after each line that has code, in a file that is not the kernel's own."""
_SHORT = 400
"""Number of lines up to which a file that is not the kernel's own is shown whole."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source file of the machine code, and those of its lines that a listing shows."""

    file: str
    """Name as in the listing's rows."""
    name: str
    """Name without folders, or with as many as are needed to distinguish two files."""
    lines: tuple[tuple[int, str], ...] = field(repr=False)
    """(number, text) of the lines that are shown. If the file cannot be read: lines with code, and empty texts."""


def source_files(code: Code, texts: Mapping[str, str] | None = None) -> tuple[SourceFile, ...]:
    """Return the files of a listing, the kernel's own first. `texts` has source texts by file name; others are read.

    The kernel's own file and short ones are shown whole; of long ones, only the lines near those that have code.
    """
    used: dict[str, set[int]] = {file: set() for file in code.files}
    for row in code.rows:
        for file, line in row.places:
            used[file].add(line)
    names = _names(list(used))
    return tuple(
        SourceFile(file, names[file], tuple(_shown(_text(file, texts or {}), lines, whole=at == 0)))
        for at, (file, lines) in enumerate(used.items())
    )


def _text(file: str, texts: Mapping[str, str]) -> list[str]:
    if file in texts:
        return texts[file].splitlines()
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return []


def _shown(lines: Sequence[str], used: Collection[int], *, whole: bool) -> Iterable[tuple[int, str]]:
    if not lines:
        return ((number, "") for number in sorted(used))
    if whole or len(lines) <= _SHORT:
        return enumerate(lines, 1)
    near = {number for line in used for number in range(line - _AROUND, line + _AROUND + 1)}
    return ((number, lines[number - 1]) for number in sorted(near) if 0 < number <= len(lines))


def _names(files: Sequence[str]) -> dict[str, str]:
    """Return, for each file, the shortest end of its path that no other file has."""
    found = {}
    for file in files:
        parts = PurePath(file).parts
        for count in range(1, len(parts) + 1):
            end = parts[-count:]
            if sum(PurePath(other).parts[-count:] == end for other in files) == 1:
                break
        found[file] = "/".join(end).replace("//", "/")
    return found
