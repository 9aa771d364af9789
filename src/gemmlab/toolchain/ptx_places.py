"""Find the places in the source from which lines of PTX come, by its `.loc` directives.

A cubin's line tables lack some: ptxas omits a row if its line equals that of the previous row, even if it was inlined
by another call. The directives name every place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gemmlab.toolchain.line_tables import Place

_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"')
_LOC = re.compile(r"\s*\.loc\s+(\d+) (\d+) (\d+)(?:, function_name [^,]+, inlined_at (\d+) (\d+) (\d+))?")
_Location = tuple[int, int, int]
"""A position as a `.loc` directive states it: number of the file, line, column."""
_Chain = tuple[_Location, ...]
"""A location, then that of the call by which it was inlined, and so on outwards."""
_Directive = tuple[_Location, _Location | None]
"""A location, and that of the call by which it was inlined; `None` if it was not."""


def ptx_places(ptx: str) -> tuple[tuple[Place, ...], ...]:
    """Return, for each line of PTX, its place in the source, then those of the calls by which it was inlined, outwards.

    A line's places are empty if unknown.
    """
    lines = ptx.splitlines()
    files = {int(match[1]): match[2] for line in lines if (match := _FILE.match(line))}
    directives = {number: _directive(match) for number, line in enumerate(lines) if (match := _LOC.match(line))}
    chains = _chains(tuple(directives.values()))
    places = dict(zip(directives, chains, strict=True))
    found: list[tuple[Place, ...]] = []
    now: tuple[Place, ...] = ()
    for number, line in enumerate(lines):
        if number in places:
            now = tuple((files.get(file, ""), at) for file, at, _ in places[number])
        elif line.startswith("}"):
            now = ()
        found.append(now)
    return tuple(found)


def _directive(match: re.Match[str]) -> _Directive:
    numbers = [int(number) for number in match.groups() if number is not None]
    return (numbers[0], numbers[1], numbers[2]), (numbers[3], numbers[4], numbers[5]) if numbers[3:] else None


def _chains(directives: Sequence[_Directive]) -> list[_Chain]:
    """Return the chain of locations of each directive."""
    last: dict[_Location, _Chain] = {}
    """Location -> its latest chain. Usually a call's directive comes before those of the code that it inlines."""
    found: list[_Chain] = []
    for number, (own, caller) in enumerate(directives):
        before = found[-1] if found else ()
        if caller is None:
            outer: _Chain = ()
        elif caller in before:
            outer = before[before.index(caller) :]
        else:
            outer = _behind(directives, number, caller, last) or last.get(caller, (caller,))
        found.append((own, *outer))
        last[own] = found[-1]
    return found


def _behind(
    directives: Sequence[_Directive], number: int, caller: _Location, last: Mapping[_Location, _Chain]
) -> _Chain:
    """Return the chain of a call whose own directive follows those of the code that it inlines; empty if none follows.

    Copies of a loop's body have this order.
    """
    for own, outer in directives[number + 1 :]:
        if own == caller and outer is not None:
            return (own, *last.get(outer, (outer,)))
        if outer != caller and own[1]:
            break
    return ()
