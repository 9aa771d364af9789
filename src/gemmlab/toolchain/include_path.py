"""The folders in which the compiler searches for a program's headers, and machine-independent names of files there."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_JOINED = re.compile(r"(?:-I=?|--include-path=)(.+)", re.DOTALL)
_APART = {"-I", "--include-path"}
_WITH_VALUE = {
    "-D", "-U", "--define-macro", "--undefine-macro", "-include", "--pre-include", "-Xptxas", "--ptxas-options",
    "-Xcudafe",
}  # fmt: skip
"""Options whose value may be the next argument, which is then no option even if it looks like one."""


@dataclass(frozen=True, slots=True)
class IncludePath:
    """The source's own folder and those that options name (`named`), in the order of search, all absolute.

    A file's *place* is its name in the cache, which may be copied to another machine: `"0/deep/x.cuh"` lies below the
    source's own folder, `"1/x.cuh"` in the first folder that an option names. A file in none of them has its absolute
    path, `"/abs/x.cuh"`, as its place.
    """

    own: str
    """The source's own folder; empty for a source that is no file."""
    named: tuple[str, ...]

    @property
    def folders(self) -> dict[int, str]:
        """Number -> folder: 0 is the source's own, if it has one; options' folders count from 1."""
        return {number: folder for number, folder in enumerate((self.own, *self.named)) if folder}

    def places(self, path: str) -> list[str]:
        """Return every place of the file at an absolute path: one for each folder above it, else the path itself.

        `..` in the path is not resolved.
        """
        path = slashes(path)
        found = [
            f"{number}{path[len(folder) :]}"
            for number, folder in self.folders.items()
            if path == folder or path.startswith(folder.rstrip("/") + "/")
        ]
        return found or [path]

    def real(self, place: str) -> str | None:
        """Return the path on this machine of the file at a place; `None` if no folder has the place's number."""
        if Path(place).is_absolute():
            return place
        number, _, name = place.partition("/")
        folder = self.folders.get(int(number)) if number.isdecimal() else None
        return None if folder is None else f"{folder}/{name}" if name else folder


def include_path(source: str, options: Sequence[str]) -> IncludePath:
    """Return the folders for a source file and these compiler options. If `source` is no file, it has no own folder."""
    own = absolute(str(Path(source).parent)) if source and Path(source).is_file() else ""
    return IncludePath(own, tuple(absolute(folder) for folder in split(options)[0]))


def split(options: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the folders that compiler options name for the search of headers, and all other options."""
    folders: list[str] = []
    others: list[str] = []
    pending = iter(options)
    for option in pending:
        if match := _JOINED.fullmatch(option):
            folders.append(match[1])
        elif option in _APART:
            # An option without a value is left for the compiler to report.
            value = next(pending, None)
            (others if value is None else folders).append(option if value is None else value)
        else:
            others.append(option)
            if option in _WITH_VALUE:
                others += [value for value in [next(pending, None)] if value is not None]
    return folders, others


def absolute(path: str) -> str:
    """Return `path` as an absolute path with forward slashes; `..` stays, because the part before it may be a link."""
    # Path would remove `.`, and there may be no working directory.
    whole = path if Path(path).is_absolute() else os.path.join(Path.cwd(), path)  # noqa: PTH118
    return slashes(whole).rstrip("/") or "/"


def slashes(path: str) -> str:
    """Return a path with forward slashes instead of Windows' backslashes."""
    return path.replace("\\", "/") if os.name == "nt" else path
