"""Hazards that only the PTX shows, with their places in the source."""

from __future__ import annotations

from pathlib import PurePath

from gemmlab.core.hazard import Hazard
from gemmlab.sass.source_places import call_site
from gemmlab.toolchain.ptx_places import ptx_places


def hazard_at(kind: str, kernel: str, ptx: str, number: int, other: int, message: str) -> Hazard:
    """Return the hazard at a line of PTX, with another line or 0; `kernel` is its name for the reader."""
    places = ptx_places(ptx)
    (file, line), called_from = _place(places[number - 1], number)
    (other_file, other_line), other_called_from = _place(places[other - 1], other) if other else (("", 0), "")
    return Hazard(
        kind=kind, kernel=kernel, block=(0, 0, 0), thread=(0, 0, 0), address=None, file=file, line=line,
        other_line=other_line, other_file="" if other_file == file else other_file, count=1, message=message,
        called_from=called_from, other_called_from=other_called_from,
    )  # fmt: skip


def line_in_words(ptx: str, number: int) -> str:
    """A place in the source: `"mine.cu:12"`, with the line that calls its function."""
    (file, line), called_from = _place(ptx_places(ptx)[number - 1], number)
    return f"{PurePath(file).name}:{line}" + (f" (called from {called_from})" if called_from else "")


def _place(chain: tuple[tuple[str, int], ...], number: int) -> tuple[tuple[str, int], str]:
    """Return the innermost place, or that in the PTX, and the line of the kernel that calls its function."""
    if not chain:
        return ("PTX", number), ""
    return chain[0], call_site(chain) if chain[1:] else ""
