"""The places where the compiler looked for files: they decide whether code in the cache still fits.

Each place (see `include_path`) has a mark: the SHA-256 of the file that was read there, `ABSENT` where there was
nothing (a file that comes to lie there would be read instead of the one that was), `PRESENT` where it mattered only
that a file was there.
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
    """The mark of a file that was read."""
    return hashlib.sha256(data).hexdigest()


def as_it_was(searched: Searched, path: IncludePath) -> bool:
    """Return whether the compiler, given the folders of `path`, would find the same files as then."""
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
    """Return the first part of the path `folder/name` that does not exist; `None` when all of it exists."""
    reached = folder
    for part in ("", *name.split("/")):
        reached = f"{reached}/{part}" if part else reached
        if not os.path.exists(reached):  # noqa: PTH110 - hundreds of these
            return reached
    return None
