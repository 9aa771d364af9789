"""One plain sentence on the hazards of a kernel that failed: the array, the place, and what happens there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from gemmlab.core.hazard import BARRIER, MISALIGNED, OUTSIDE, RACE, TWO_WRITES, UNWRITTEN, Hazard, is_write
from gemmlab.core.hazard_source import source_text
from gemmlab.core.missing_barrier import barrier_lines, lines_of, missing_barriers
from gemmlab.core.race_causes import (
    Place,
    Read,
    barrier_words,
    declared_as,
    dynamic_memory,
    faulty_barrier,
    same_element,
)
from gemmlab.core.source_loops import without_comments
from gemmlab.verify.leading_lines import lines_without

_ENDED = "already ended"
"""Words in the message of a barrier that was passed although some threads had ended before it."""
_ARRAY_LAST = frozenset({OUTSIDE, UNWRITTEN, MISALIGNED})
_WIDTH = re.compile(r"no multiple of (\d+)")
_INSTRUCTION = re.compile(r" \([A-Z][\w.]*\)$")


def sentence_on(kind: str, cases: Sequence[Sequence[Hazard]], read: Read = source_text) -> str:
    """Return a sentence on a kernel's hazards of one kind, or on their cause.

    `kind` is as `race_causes.leading_kind` returns it. `cases` are the hazards of each failing case. `read` returns a
    file's text.
    """
    every = [hazard for case in cases for hazard in case]
    if kind == RACE:
        return _race(cases)
    # Races may show a barrier that not all threads reach, without a hazard of its own.
    if kind == BARRIER and (place := faulty_barrier(every)) is not None:
        return _passed_by(place, every)
    first = next(hazard for hazard in every if hazard.kind == kind)
    if kind == BARRIER and _ENDED in first.message:
        return _ended_before(every)
    if kind in _ARRAY_LAST and first.array:
        return _access(first, read)
    # Kind and place alone do not say what is wrong; the first clause of the message does.
    clause = _INSTRUCTION.sub("", first.message.partition("; ")[0])
    return ", ".join(filter(None, [clause, f"at {first.place}", first.array and f"array {first.array}"]))


def alignment_hint(cases: Sequence[Sequence[Hazard]]) -> str:
    """Return advice to state `align` in the kernel's file: the bytes of the widest misaligned access to an operand.

    The address of such an access must be a multiple of that number. The text is empty if no access to an operand is
    misaligned.
    """
    found = (one for case in cases for one in case if one.kind == MISALIGNED and one.space == "global" and one.array)
    widths = [int(match[1]) for one in found if (match := _WIDTH.search(one.message))]
    if not widths:
        return ""
    return f"if operands and their rows always begin at multiples of {max(widths)} bytes, state align = {max(widths)}"


def _access(hazard: Hazard, read: Read) -> str:
    """Return a sentence on one access to an array."""
    done = f"{hazard.array}{declared_as(hazard, read)} is {'written' if is_write(hazard) else 'read'}"
    if hazard.kind == OUTSIDE:
        memory = dynamic_memory(hazard, read)
        cause = f": {memory}" if memory else _without_ld(hazard, read)
        return f"{done} outside its bounds at {hazard.place}{cause}"
    if hazard.kind == UNWRITTEN:
        return f"{done} at {hazard.place} where nothing has written it"
    return f"{done} at {hazard.place}, at an address that is no multiple of the access's width"


def _without_ld(hazard: Hazard, read: Read) -> str:
    """Return `, which indexes B without ldb`, if the line of an access to operand B does; else empty."""
    name = hazard.array.lower()
    if hazard.space != "global" or hazard.called_from or not Path(hazard.file).suffix:
        return ""
    text = without_comments(read(hazard.file))
    if not re.search(rf"\bld{name}\b", text) or hazard.line not in lines_without(text, name):
        return ""
    return f", which indexes {hazard.array} without ld{name}"


def _ended_before(every: Sequence[Hazard]) -> str:
    """Return a sentence with the lines of the barriers, and those where threads end that do not reach them."""
    stops = [one for one in every if one.kind == BARRIER and _ENDED in one.message]
    barriers = list(dict.fromkeys(one.place for one in stops if barrier_lines([one.text, one.called_text])))
    ends = [place for place in dict.fromkeys(one.place for one in stops) if place not in barriers]
    places = " and ".join([*ends, *barriers])
    if ends and barriers:
        what = "barrier" if len(barriers) == 1 else "barriers"
        places = f"threads end at {' and '.join(ends)}; {what} at {' and '.join(barriers)}"
    return f"some threads of the block end before a barrier that the others reach ({places}): all have to reach it"


def _passed_by(place: Place, hazards: Sequence[Hazard]) -> str:
    """Return a sentence on the barrier at `place` that not all threads reach, and the arrays that therefore race."""
    races = _arrays([hazard for hazard in hazards if hazard.kind == RACE])
    follows = f"; {races} race because of that" if races else ""
    return f"not all threads reach {barrier_words(place)}: it stands under a condition, or in divergent code{follows}"


def _arrays(hazards: Sequence[Hazard]) -> str:
    return " and ".join(dict.fromkeys(hazard.array for hazard in hazards if hazard.array))


def _race(cases: Sequence[Sequence[Hazard]]) -> str:
    """Return a sentence on the races: the arrays of the first case that has some, the place, and the cause if known."""
    races = next(found for case in cases if (found := [one for one in case if one.kind == RACE]))
    arrays = _arrays(races) or f"{races[0].space} memory".lstrip()
    every = [one for case in cases for one in case]
    barrier = missing_barriers(every).get(lines_of(races[0]), "")
    missing = f"; missing in {Path(races[0].file).name}: {barrier}" if barrier else ""
    # Where the kernel reads the element first, for beta, the read races too; the second writer is the cause of both.
    writes = next((one for one in races if TWO_WRITES in one.message), None)
    if writes is not None:
        return f"{writes.array or arrays}, at {Path(writes.file).name}:{writes.line}: {TWO_WRITES}"
    # An index that goes too far may make other arrays race as well, and before this one.
    for one in every:
        if twice := same_element(one):
            return f"{one.array or arrays}, at {Path(one.file).name}:{one.line}: {twice}"
    return f"threads access {arrays} without an order, at {races[0].place}{missing}"
