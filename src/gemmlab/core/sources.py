"""Which version of a source file this process runs: the one on disk now, unless the file has changed since."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


class Sources:
    """Source files, noted when they are imported."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._seen = {path: _state(path) for path in sorted(paths)}
        self._digest: str | None = None

    def fingerprint(self) -> str:
        """SHA-256 over names and contents; empty when a file is no longer the one that was noted.

        What a process makes with the old source must never be filed under the new one's fingerprint.
        """
        digest = self._digest or self._read()
        # In this order: what was read is what was noted only if nothing has changed until now.
        if any(state is None or _state(path) != state for path, state in self._seen.items()):
            return ""
        self._digest = digest
        return digest

    def _read(self) -> str:
        digest = hashlib.sha256()
        for path in self._seen:
            with suppress(OSError):
                digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()


def _state(path: Path) -> tuple[int, int, int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
