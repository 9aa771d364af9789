"""Detect whether source files have changed on disk since this process imported them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


class Sources:
    """A set of source files. Their state on disk is read when the set is made, which is when they are imported."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._states = {path: _state(path) for path in sorted(paths)}
        self._digest: str | None = None

    def fingerprint(self) -> str:
        """Return the SHA-256 of names and contents; empty if a file has changed since the set was made, or is missing.

        So code made from old sources is never cached under the fingerprint of new ones.
        """
        digest = self._digest or self._read()
        # Compare states after reading: then an unchanged state proves that the old contents were read.
        if any(state is None or _state(path) != state for path, state in self._states.items()):
            return ""
        self._digest = digest
        return digest

    def _read(self) -> str:
        digest = hashlib.sha256()
        for path in self._states:
            with suppress(OSError):
                digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()


def _state(path: Path) -> tuple[int, int, int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
