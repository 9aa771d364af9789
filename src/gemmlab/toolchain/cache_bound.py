"""The bound on the size of the cache: the least recently used files are removed first.

A file's access time is the time of its last use; reading it through `private_files` sets that time, at most once an
hour. Files are removed one by one, by name. A process that has opened a file reads it to its end; a later process does
not find it and compiles. Several processes may remove files at the same time.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

from gemmlab.core.log import LOG
from gemmlab.core.warning import warn_caller
from gemmlab.toolchain import private_files

VARIABLE = "GEMMLAB_CACHE_LIMIT"
DEFAULT_LIMIT = 2 * 10**9
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_LIMIT = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?", re.IGNORECASE)
_OWN_FILES = re.compile(r"[0-9a-f]{64}\.(?:bin|ref|sass)|\.new-[0-9a-f]{16}")
_OWN_FOLDERS = re.compile(r"studies|charts|cuda-headers-[\w.]+")
_TEMPORARY, _HEADERS = ".new-", "cuda-headers-"
_ROOM = 0.9
"""The fraction of the bound to which the cache is reduced, so that not every new file requires a removal."""
_STALE_S = 3600.0
"""Age in seconds from which a temporary file is abandoned: no process is still writing it."""
_LOOK_EVERY = 64 << 20
"""Bytes that a process adds before it checks the cache's size again."""
_added = _LOOK_EVERY
"""Bytes that this process added since its last check of the size. The first file of a process makes a check."""


@dataclass(frozen=True, slots=True)
class Removed:
    """The number and bytes of the files removed from the cache, and the bytes that are left in it."""

    files: int
    nbytes: int
    left: int


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path
    nbytes: int
    used: float
    """Time of the last use, seconds since the epoch."""
    header: bool = False
    """True for a header of CUDA that a compiler unpacked into the cache."""


def limit() -> int | None:
    """Return the bound in bytes from `GEMMLAB_CACHE_LIMIT` (`500M`, `2G`, `none`), by default 2 GB; `None`: no
    bound.
    """
    return _parsed(os.environ.get(VARIABLE, "").strip())


def size(directory: Path) -> int:
    """Return the bytes of all files that the cache wrote in `directory`."""
    return sum(entry.nbytes for entry in _entries(directory))


def prune(directory: Path, most: int) -> Removed:
    """Remove the least recently used files until at most `most` bytes are left, and abandoned temporary files.

    Headers of CUDA stay, because another process may be compiling with them, so more than `most` bytes may be left.
    """
    return _remove(directory, most, headers=False)


def clear(directory: Path) -> Removed:
    """Remove every file that the cache wrote, CUDA's headers included, except for temporary files of the last hour.

    Other files in the folder stay.
    """
    return _remove(directory, 0, headers=True)


def _remove(directory: Path, most: int, *, headers: bool) -> Removed:
    entries = sorted(_entries(directory), key=lambda entry: entry.used)
    left = sum(entry.nbytes for entry in entries)
    files = nbytes = 0
    for entry in entries:
        temporary = entry.path.name.startswith(_TEMPORARY)
        stale = temporary and entry.used < time.time() - _STALE_S
        if not stale and (temporary or left <= most or (entry.header and not headers)):
            continue
        private_files.remove(entry.path)
        if not entry.path.exists():
            files, nbytes, left = files + 1, nbytes + entry.nbytes, left - entry.nbytes
    LOG.debug("cache %s: removed %d files, %d bytes; %d bytes are left", directory, files, nbytes, left)
    return Removed(files, nbytes, left)


def added(directory: Path, nbytes: int) -> None:
    """Count a file of `nbytes` that was added; now and then check the cache's size, and prune it above its bound."""
    global _added
    _added += nbytes
    if _added < _LOOK_EVERY:
        return
    _added = 0
    most = limit()
    if most is not None and size(directory) > most:
        prune(directory, int(_ROOM * most))


def _entries(directory: Path) -> Iterator[_Entry]:
    """Yield the files that the cache wrote, which have certain names: in `directory` and in the cache's folders
    there.
    """
    with suppress(OSError), os.scandir(directory) as inside:
        for found in inside:
            with suppress(OSError):
                if found.is_dir(follow_symlinks=False):
                    if _OWN_FOLDERS.fullmatch(found.name):
                        yield from _below(Path(found.path))
                elif _OWN_FILES.fullmatch(found.name):
                    yield _entry(Path(found.path))


def _below(folder: Path) -> Iterator[_Entry]:
    header = folder.name.startswith(_HEADERS)
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield _entry(path, header=header)


def _entry(path: Path, *, header: bool = False) -> _Entry:
    facts = path.lstat()
    return _Entry(path, facts.st_size, max(facts.st_atime, facts.st_mtime), header)


@once
def _parsed(text: str) -> int | None:
    """Return the bound in a text; the default if it is empty or, with a warning, if it is invalid."""
    if not text:
        return DEFAULT_LIMIT
    if text.lower() == "none":
        return None
    found = _LIMIT.fullmatch(text)
    if found is None:
        warn_caller(f"{VARIABLE}={text!r} is no size: write 500M, 2G or none; {DEFAULT_LIMIT // 10**9} GB are used")
        return DEFAULT_LIMIT
    return int(float(found[1]) * _UNITS[found[2].lower()])
