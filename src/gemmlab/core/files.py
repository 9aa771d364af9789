"""Write files atomically."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from gemmlab.core.errors import UsageError


def replace_file(target: Path, data: bytes) -> None:
    """Write `data` to `target` atomically: readers see the old file or the whole new one. Raises `OSError`."""
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def write_output(target: Path, data: bytes) -> None:
    """Write a file that the user named, atomically, or a device such as /dev/null in place.

    Raises `UsageError` with its name if it cannot be written.
    """
    if target.is_dir():
        raise UsageError(f"cannot write {target}: it is a folder")
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)  # Replacing a device would make it a regular file.
        else:
            replace_file(target, data)
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror or error}") from error


def _umask() -> int:
    """Return the process's umask. It can only be read by setting it, so for a moment it is 0o022, the usual value."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
