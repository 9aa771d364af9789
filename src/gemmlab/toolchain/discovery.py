"""Derive the files on which an artifact depends from the compiler's listing of opened files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gemmlab.core.errors import CompileError
from gemmlab.toolchain.include_path import IncludePath
from gemmlab.toolchain.searched import ABSENT, PRESENT, first_missing, mark_of

ASKS = b"__has_include"
_CONTINUED = re.compile(rb"\\[ \t]*\r?\n")
_HAS_INCLUDE = re.compile(rb'__has_include(?:_next)?\s*\(\s*["<]([^">\n]+)[">]\s*\)')
_ABOUT_ITSELF = re.compile(rb"(?:\bdefined[\s(]*|#[ \t]*ifn?def[ \t]+)__has_include")


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The files on which a run of the compiler depended, besides the texts that it was given."""

    opened: tuple[str, ...]
    """The user's own files, in the order in which they were opened."""
    data: Mapping[str, bytes] = field(repr=False)
    """Path -> contents of the files in `opened`, and of files whose existence was tested."""
    searched: Mapping[str, str] | None
    """Marks of the searched places (see `toolchain.searched`); `None` if they are unknown: the artifact must not be
    cached.
    """


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The folders in which the compiler searches for headers."""

    path: IncludePath
    main: str
    """The source's virtual path. An `#include "x"` in the source looks into its folder first."""
    ready: tuple[str, ...]
    """Folders of headers that belong to the compiler or to gemmlab. Their contents follow from the versions of
    these.
    """

    def is_own(self, file: str) -> bool:
        """Return whether a file is the user's own: it lies in none of the folders `ready`."""
        return not any(file.startswith(f"{folder}/") for folder in self.ready)


def queries_files(texts: Sequence[bytes]) -> bool:
    """Return whether sources test for files without including them (`__has_include`)."""
    return any(ASKS in _CONTINUED.sub(b"", text) for text in texts)


def discover(listed: Sequence[str], texts: Sequence[bytes], where: Surroundings) -> Dependencies:
    """Return the dependencies of a run that compiled `texts` (source and given headers) and opened the files `listed`.

    They include places where a file did not exist but would have been found first. Raises `CompileError` if a file
    cannot be read.
    """
    own = tuple(file for file in listed if where.is_own(file))
    data = {file: _read(file) for file in own}
    marks = {file: mark_of(content) for file, content in data.items()}
    folders = list(dict.fromkeys([*where.path.folders.values(), *map(_folder, (where.main, *own))]))
    names = {name for file in {*listed} for name in _names(file, [*folders, *where.ready])}
    queried = _has_include_names([*texts, *data.values()])
    for name in [*names, *(queried or ())]:
        for folder in folders:
            file = f"{folder}/{name}"
            if file in marks:
                continue
            missing = first_missing(folder, name)
            if missing is not None:
                marks[missing] = ABSENT
            elif name in (queried or ()) and Path(file).is_file():
                marks[file], data[file] = PRESENT, _read(file)
    searched = {place: mark for file, mark in marks.items() for place in where.path.places(file)}
    return Dependencies(own, data, None if queried is None else searched)


def _names(file: str, folders: Sequence[str]) -> Iterator[str]:
    """Yield the names by which an `#include` may have found a file: its path relative to each folder above it."""
    return (file[len(folder) + 1 :] for folder in folders if file.startswith(f"{folder}/"))


def _has_include_names(texts: Sequence[bytes]) -> set[str] | None:
    """Return the names for which texts test by `__has_include`; `None` if one is no literal."""
    names: set[str] = set()
    for text in texts:
        plain = _CONTINUED.sub(b"", text)
        written_out = _HAS_INCLUDE.findall(plain)
        if plain.count(ASKS) > len(written_out) + len(_ABOUT_ITSELF.findall(plain)):
            return None
        names.update(name.decode("utf-8", "surrogateescape") for name in written_out)
    return names


def _folder(file: str) -> str:
    return file.rpartition("/")[0]


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise CompileError(f"{file}: cannot be read: {error.strerror or error}") from error
