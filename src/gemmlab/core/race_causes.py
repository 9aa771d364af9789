"""Causes of races other than a missing barrier: a barrier that not all threads reach, or an array that is too small."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from gemmlab.core.hazard import BARRIER, OUTSIDE, RACE, WARP_SYNC, Hazard
from gemmlab.core.hazard_source import shared_extents, source_text
from gemmlab.core.missing_barrier import barrier_lines
from gemmlab.core.source_loops import innermost, loops_of, without_comments

Read = Callable[[str], str]
Place = tuple[str, int]
"""A file and a line."""
_CONDITION = re.compile(r"\bif\s*\(")
_STORE = re.compile(r"\bwrite of shared memory\b.*\(ST")
_NO_BYTES = re.compile(r" at byte -?\d+ of 0$")
DIVERGENT = "divergent"
"""A word that the emulator's message has for a barrier that only some threads of a warp reach."""


def leading_kind(cases: Sequence[Sequence[Hazard]], usual: str) -> str:
    """Return the kind of hazard that causes the others: accesses beyond arrays in shared memory, or else a barrier that
    not all threads reach. Without both, return `usual`.
    """
    every = [hazard for case in cases for hazard in case]
    if any(hazard.kind == OUTSIDE and hazard.space == "shared" for hazard in every):
        return OUTSIDE
    return BARRIER if faulty_barrier(every) is not None else usual


def faulty_barrier(hazards: Iterable[Hazard], read: Read = source_text) -> Place | None:
    """Return the first place of a barrier that not all threads reach; `None` if the hazards show none.

    If some threads of a warp skip a barrier, the emulator reports it. If whole warps skip it, it is found in the
    source: it stands under a condition, between the lines of a race that it would order.
    """
    found: list[Place] = []
    for hazard in hazards:
        if hazard.line and _passed_by(hazard):
            found.append((hazard.file, hazard.line))
        elif hazard.kind == RACE and hazard.space == "shared" and hazard.line and not hazard.other_file:
            first, last = sorted((hazard.line, hazard.other_line or hazard.line))
            lines = without_comments(read(hazard.file)).split("\n")
            found += [(hazard.file, at) for at in barrier_lines(lines) if first < at < last and _conditional(lines, at)]
    return min(found, default=None)


def _passed_by(hazard: Hazard) -> bool:
    """Return whether the hazard reports a barrier that some threads of a warp do not reach."""
    divergent = hazard.kind == BARRIER and DIVERGENT in hazard.message
    return divergent or (hazard.kind == WARP_SYNC and bool(barrier_lines([hazard.text])))


def _conditional(lines: Sequence[str], at: int) -> bool:
    """Return whether the barrier on line `at` follows an `if`, on that line or at the end of the line before."""
    before = next((line for line in reversed(lines[: at - 1]) if line.strip()), "").strip()
    opens = _CONDITION.search(before) is not None and before.endswith((")", "{"))
    return _CONDITION.search(lines[at - 1]) is not None or opens


def same_element(race: Hazard, read: Read = source_text) -> str:
    """Return why two threads store to the same element of a shared array: an index too large, or an array too small.

    The race is between stores of one line in one iteration. Return `""` for any other hazard, such as a race between
    different lines, or in a loop that has no barrier, so that it may be between iterations.
    """
    if race.kind != RACE or race.line != race.other_line or race.other_file or _STORE.search(race.message) is None:
        return ""
    text = without_comments(read(race.file))
    loop = innermost(loops_of(text), race.line, race.line)
    if loop is not None and not any(loop.first <= at <= loop.last for at in barrier_lines(text.split("\n"))):
        return ""
    extents = shared_extents(text).get(race.array, "")
    declared = f": {race.array} is declared as {race.array}{extents}, " if extents else ": "
    return (
        f"two threads write the same element{declared}so an index goes past the end of a row, or the array is too small"
    )


def declared_as(hazard: Hazard, read: Read = source_text) -> str:
    """Return `, declared as Bs[15][16],` for an access beyond an array of shared memory.

    Return `""` for other hazards, and if the declaration is not found.
    """
    if hazard.kind != OUTSIDE or hazard.space != "shared" or not hazard.array:
        return ""
    extents = shared_extents(without_comments(read(hazard.file))).get(hazard.array, "")
    return f", declared as {hazard.array}{extents}," if extents not in ("", "[]") else ""


def dynamic_memory(hazard: Hazard, read: Read = source_text) -> str:
    """Return advice on `smem_bytes` for an access beyond an array of dynamic shared memory, `extern __shared__ s[]`.

    Return `""` for other hazards, and if its file declares no such array.
    """
    if hazard.kind != OUTSIDE or hazard.space != "shared":
        return ""
    declared = shared_extents(without_comments(read(hazard.file)))
    dynamic = next((name for name, extents in declared.items() if extents == "[]"), "")
    if not dynamic or declared.get(hazard.array, "[]") != "[]":
        return ""
    none = _NO_BYTES.search(hazard.message)
    cure = "state its bytes as smem_bytes" if none else "smem_bytes is too small, or an index too large"
    return f"{hazard.array if hazard.array in declared else dynamic}[] is dynamic shared memory: {cure}"


def barrier_words(place: Place) -> str:
    """Return a barrier's place in words."""
    return f"the barrier at {Path(place[0]).name}:{place[1]}"
