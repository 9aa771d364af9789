"""The headers that a CUDA source reaches on disk: those beside it, and those in folders that options name.

They are read here and handed to the compiler as text, so that what is compiled is what the cache's key was made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gemmlab.core.errors import CompileError
from gemmlab.toolchain.host_headers import HOST_HEADERS

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*(?:\"([^\"\n]+)\"|<([^>\n]+)>)", re.MULTILINE)
_FOLDER = re.compile(r"(?:-I=?|--include-path=)(.+)")
_EARLY = re.compile(r"(?:-include|--pre-include)=(.+)")


@dataclass(slots=True)
class Reached:
    """What a source includes, directly or through other headers."""

    headers: dict[str, str] = field(default_factory=dict)
    """Text by the name that `#include` calls it: those given, those found, stand-ins for those of the host."""
    paths: dict[str, Path] = field(default_factory=dict)
    """Where each one found on disk lies."""
    elsewhere: set[str] = field(default_factory=set)
    """Names that are neither given nor found: the CUDA headers, or mistakes."""


def is_folder(option: str) -> bool:
    """Whether a compiler option names a folder of headers."""
    return _FOLDER.fullmatch(option) is not None


def reach(source: str, path: str, given: Mapping[str, str], options: Sequence[str]) -> Reached:
    """Follow the includes of `source`, whose file is `path` (it need not exist).

    Raises `CompileError` when one name stands for two files.
    """
    reached = Reached(headers=dict(given))
    beside = [Path(path).parent] if path and Path(path).is_file() else []
    folders = [*beside, *(Path(match[1]) for option in options if (match := _FOLDER.fullmatch(option)))]
    early = [match[1] for option in options if (match := _EARLY.fullmatch(option))]
    pending = [(name, folders) for name in (*early, *_names(source))]
    pending += [(name, folders) for text in given.values() for name in _names(text)]
    while pending:
        name, places = pending.pop()
        if name in given:
            continue
        found = next((file for place in places if (file := place / name).is_file()), None)
        if found is None and name in HOST_HEADERS:
            reached.headers[name] = HOST_HEADERS[name]
        elif found is None:
            reached.elsewhere.add(name)
        elif name not in reached.paths:
            pending += [(nested, [found.parent, *folders]) for nested in _add(reached, name, found)]
        elif not reached.paths[name].samefile(found):
            raise CompileError(f"{path} includes two files as {name}: {reached.paths[name]} and {found}; rename one")
    return reached


def _add(reached: Reached, name: str, found: Path) -> Iterator[str]:
    """Take up a header, and yield the names that it includes."""
    same = next((other for other, path in reached.paths.items() if path.samefile(found)), None)
    reached.paths[name] = found
    if same is not None:
        # Under two names the compiler takes it for two files, and `#pragma once` would not hold.
        reached.headers[name] = f'#include "{same}"\n'
        return
    try:
        reached.headers[name] = found.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CompileError(f"{found}: cannot be read: {error}") from error
    yield from _names(reached.headers[name])


def _names(text: str) -> Iterator[str]:
    for match in _INCLUDE.finditer(text):
        yield match[1] or match[2]
