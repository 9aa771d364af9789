"""Hazards found in PTX, with the lines of source that the PTX names."""

from __future__ import annotations

from pathlib import PurePath

from gemmlab.core.hazard import Hazard
from gemmlab.sass.source_places import call_site
from gemmlab.toolchain.ptx_places import ptx_places


def hazard_at(kind: str, kernel: str, ptx: str, number: int, other: int, message: str) -> Hazard:
    """Return a hazard at PTX line `number` in the kernel named `kernel`; `other` is a second PTX line, or 0."""
    places = ptx_places(ptx)
    (file, line), called_from = _place(places[number - 1], number)
    (other_file, other_line), other_called_from = _place(places[other - 1], other) if other else (("", 0), "")
    return Hazard(
        kind=kind, kernel=kernel, block=(0, 0, 0), thread=(0, 0, 0), address=None, file=file, line=line,
        other_line=other_line, other_file="" if other_file == file else other_file, count=1, message=message,
        called_from=called_from, other_called_from=other_called_from,
    )  # fmt: skip


def line_in_words(ptx: str, number: int) -> str:
    """Return the source line of a PTX line in words: `"mine.cu:12"`, and the line that calls its function, if any."""
    (file, line), called_from = _place(ptx_places(ptx)[number - 1], number)
    return f"{PurePath(file).name}:{line}" + (f" (called from {called_from})" if called_from else "")


def _place(chain: tuple[tuple[str, int], ...], number: int) -> tuple[tuple[str, int], str]:
    """Return the innermost source place (the PTX line if unknown), and the line of the kernel that calls its function.

    The second is empty if the place is in no called function.
    """
    if not chain:
        return ("PTX", number), ""
    return chain[0], call_site(chain) if chain[1:] else ""
