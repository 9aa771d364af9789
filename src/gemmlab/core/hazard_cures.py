"""Add the cure to a hazard's message: the place of a missing barrier, the barrier that not all threads reach, an index
or array size that is wrong, or the statement that the launch lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gemmlab.core.hazard import RACE, Hazard
from gemmlab.core.hazard_source import source_text
from gemmlab.core.missing_barrier import lines_of, missing_barriers
from gemmlab.core.race_causes import Read, barrier_words, dynamic_memory, faulty_barrier, same_element

_MISSING = (": __syncthreads() is missing", ": __syncwarp() is missing")


def with_cures(
    hazards: Sequence[Hazard], among: Sequence[Hazard] | None = None, read: Read = source_text
) -> tuple[Hazard, ...]:
    """Return hazards with their cure at the end of the message; those without a known cure stay as they are.

    A cure follows from all hazards of the kernel, `among`, by default from `hazards`: a barrier of the block orders
    accesses of a warp, too. Of several races that lack the same barrier, the first one says where to put it, and the
    others that it orders them, too. `read` returns a file's text.
    """
    every = hazards if among is None else among
    barriers, faulty = missing_barriers(every, read), faulty_barrier(every, read)
    places = set[str]()
    found = []
    for hazard in hazards:
        place = barriers.get(lines_of(hazard), "") if hazard.kind == RACE else ""
        cure = ""
        if hazard.kind == RACE and hazard.space != "global" and faulty is not None:
            cure = f"it follows from {barrier_words(faulty)}, which not all threads reach"
        elif twice := same_element(hazard, read):
            cure = twice
        elif memory := dynamic_memory(hazard, read):
            cure = memory
        elif place:
            cure = f"{place} orders these accesses, too" if place in places else f"put {place}"
            places.add(place)
        found.append(replace(hazard, message=f"{_without_cure(hazard.message)}; {cure}") if cure else hazard)
    return tuple(found)


def _without_cure(message: str) -> str:
    """Return a message without its ending in `_MISSING`: the cure names the barrier."""
    for missing in _MISSING:
        message = message.removesuffix(missing)
    return message
