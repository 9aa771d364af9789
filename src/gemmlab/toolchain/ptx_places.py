"""Source places of the lines of PTX, by its `.loc` directives.

ptxas omits a row of a line table if its line equals that of the previous row, even if it was inlined at another place.
The directives name every place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gemmlab.toolchain.line_tables import Place

_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"')
_LOC = re.compile(r"\s*\.loc\s+(\d+) (\d+) (\d+)(?:, function_name [^,]+, inlined_at (\d+) (\d+) (\d+))?")
_Location = tuple[int, int, int]
"""Number of a file, line and column."""


def ptx_places(ptx: str) -> tuple[tuple[Place, ...], ...]:
    """Return, for each line of PTX, its source places from the innermost inlined function out; empty if unknown."""
    lines = ptx.splitlines()
    files = {int(match[1]): match[2] for line in lines if (match := _FILE.match(line))}
    chains: dict[_Location, tuple[_Location, ...]] = {}
    """The last chain of each location: the directive of a caller comes before those of the code inlined there."""
    found: list[tuple[Place, ...]] = []
    now: tuple[Place, ...] = ()
    for line in lines:
        if match := _LOC.match(line):
            numbers = [int(number) for number in match.groups() if number is not None]
            own, caller = (numbers[0], numbers[1], numbers[2]), tuple(numbers[3:])
            chain = (own, *_of_caller(caller, chains))
            chains[own] = chain
            now = tuple((files.get(file, ""), number) for file, number, _ in chain)
        elif line.startswith("}"):
            now = ()
        found.append(now)
    return tuple(found)


def _of_caller(caller: Sequence[int], chains: dict[_Location, tuple[_Location, ...]]) -> tuple[_Location, ...]:
    if not caller:
        return ()
    location = caller[0], caller[1], caller[2]
    return chains.get(location, (location,))
