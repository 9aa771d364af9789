"""The places where the compiler looked for files. They determine whether code in the cache is still valid.

Each place (see `include_path`) has a mark: the SHA-256 of the file that was read there; `ABSENT` if there was no file
(a new file there would be found before the one that was read); `PRESENT` if only the existence of the file mattered.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from gemmlab.toolchain.include_path import IncludePath

Searched = Mapping[str, str]
ABSENT, PRESENT = "", "+"


def mark_of(data: bytes) -> str:
    """Return the mark of a file with these contents that was read: their SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def as_it_was(searched: Searched, path: IncludePath) -> bool:
    """Return whether the compiler, with the folders of `path`, would find the same files: all marks still fit."""
    return all(_fits(path.real(place), mark) for place, mark in searched.items())


def _fits(path: str | None, mark: str) -> bool:
    if mark == ABSENT:
        return path is None or not Path(path).exists()
    if path is None:
        return False
    if mark == PRESENT:
        return Path(path).is_file()
    try:
        return mark_of(Path(path).read_bytes()) == mark
    except OSError:
        return False


def first_missing(folder: str, name: str) -> str | None:
    """Return the shortest part of the path `folder/name`, beginning with `folder`, that does not exist; `None` if the
    whole path exists.
    """
    reached = folder
    for part in ("", *name.split("/")):
        reached = f"{reached}/{part}" if part else reached
        if not os.path.exists(reached):  # noqa: PTH110 - hundreds of these
            return reached
    return None
