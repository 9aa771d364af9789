"""Write pages as files, each one whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gemmlab.core.errors import UsageError
from gemmlab.core.files import write_output


def require_place(out: Path) -> None:
    """Raise `UsageError` if `out` cannot be written, so that the user learns it before the work begins."""
    if out.is_dir():
        raise UsageError(f"{out} is a folder; name a file, such as {out / 'report.html'}")
    if not out.parent.is_dir():
        raise UsageError(f"the folder {out.parent} does not exist")
    if not os.access(out.parent, os.W_OK):
        raise UsageError(f"cannot write to the folder {out.parent}")


def write_all(out: Path, html: bytes, beside: Mapping[str, bytes]) -> None:
    """Write the pages in `beside`, by their addresses relative to the page, then the page itself.

    Folders are made if needed. Raises `UsageError` if one of the files cannot be written.
    """
    for address, other in beside.items():
        place = out.parent / address
        try:
            place.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make the folder {place.parent}: {error.strerror or error}") from error
        write(place, other)
    write(out, html)


def write(out: Path, html: bytes) -> None:
    """Write the page atomically: readers see the old file or the whole new one. Raises `UsageError` on failure."""
    write_output(out, html)
