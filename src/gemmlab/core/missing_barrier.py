"""Find the places of missing barriers, from the lines of races in shared memory and the source between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gemmlab.core.hazard import RACE, Hazard
from gemmlab.core.hazard_source import source_text
from gemmlab.core.source_loops import Loop, innermost, loops_of, without_comments

_BARRIER = re.compile(r"\b(?:__syncthreads\w*|bar(?:rier)?\s*\.\s*\w*sync|\.sync|\w*arrive_and_wait|__syncwarp)\b")
_THREADS, _WARP = "__syncthreads()", "__syncwarp()"

Lines = frozenset[tuple[str, int]]
Span = tuple[int, int]
"""Two lines between which a barrier is missing: after the first and before the second."""


@dataclass(slots=True)
class _Cure:
    """One missing barrier, and the races that it would order."""

    what: str
    file: str
    spans: tuple[Span, ...]
    """The places where the barrier may stand; each of them orders all the races. Empty if `words` has the place."""
    lines: list[Lines]
    """The lines of each race."""
    words: str = ""
    """The place in words; empty if `spans` have the place."""
    loop: Loop | None = None
    """The loop whose iterations the barrier separates; `None` if it separates two lines of the same iteration, or
    if no loop is found.
    """
    inner: Sequence[Loop] = ()
    """The loops within `loop`; empty without `loop`."""

    def __str__(self) -> str:
        if self.words:
            return f"{self.what} {self.words}"
        if len(self.spans) == 1:
            return f"{self.what} between line {self.spans[0][0]} and line {self.spans[0][1]}"
        return f"{self.what} {_between_iterations(min(self.spans)[1], max(self.spans)[0], self.loop, self.inner)}"


def lines_of(hazard: Hazard) -> Lines:
    """Return (file, line) of each of a hazard's two accesses, in no order."""
    return frozenset(((hazard.file, hazard.line), (hazard.other_file or hazard.file, hazard.other_line)))


def missing_barriers(hazards: Iterable[Hazard], read: Callable[[str], str] = source_text) -> dict[Lines, str]:
    """Return, for each race in shared memory that lacks a barrier, the place where it is missing, in words.

    Keys are the lines of the race's two accesses (`lines_of`). `read` returns a file's text.

    Races that one barrier orders have the same place. Threads can get from one line of a race to the other in two ways:
    down the text, or in a loop from the later line to the earlier one of the next iteration. The barrier is missing on
    the way down, unless there is one already: then it is missing between iterations.
    """
    found: list[_Cure] = []
    every = [*hazards]
    by_lines = {lines_of(hazard): hazard for hazard in reversed(every)}
    # One race of two lines may be of lanes of a warp, another one of several warps: that needs the block's barrier.
    by_lines |= {lines_of(hazard): hazard for hazard in every if hazard.kind == RACE and _THREADS in hazard.message}
    for lines, hazard in by_lines.items():
        asks = hazard.kind == RACE and (_THREADS in hazard.message or _WARP in hazard.message)
        if asks and hazard.space != "global" and hazard.line and hazard.other_line:
            found.append(_cure(hazard, lines, read))
    cures: list[_Cure] = []
    for each in reversed(found):
        if not any(_join(cure, each) for cure in cures):
            cures.append(each)
    return {lines: str(cure) for cure in cures for lines in cure.lines}


def barrier_lines(lines: Sequence[str]) -> list[int]:
    """Return the numbers of the lines, from 1 on, that have a barrier."""
    return [number for number, line in enumerate(lines, 1) if _BARRIER.search(line)]


def _cure(hazard: Hazard, lines: Lines, read: Callable[[str], str]) -> _Cure:
    what = _WARP if _WARP in hazard.message else _THREADS
    if hazard.other_file:
        words = f"between {hazard.file}:{hazard.line} and {hazard.other_file}:{hazard.other_line}"
        return _Cure(what, hazard.file, (), [lines], words)
    first, second = sorted((hazard.line, hazard.other_line))
    text = without_comments(read(hazard.file))
    ordered = first == second or any(map(_BARRIER.search, text.split("\n")[first - 1 : second - 1]))
    if not ordered:
        return _Cure(what, hazard.file, ((first, second),), [lines])
    loops = loops_of(text)
    loop = innermost(loops, first, second)
    if loop is None or not loop.braced:
        return _Cure(what, hazard.file, (), [lines], _between_iterations(first, second, None, ()))
    inner = [each for each in loops if loop.first < each.first and each.last < loop.last]
    around = _around(inner, first, second)
    end = second if around is None else around.last
    return _Cure(what, hazard.file, _spans(((loop.first, first), (end, loop.last))), [lines], "", loop, inner)


def _between_iterations(first: int, second: int, loop: Loop | None, inner: Sequence[Loop]) -> str:
    """Return, in words, the place of a barrier after line `second` and before line `first` of the next iteration.

    `loop` is the loop of these iterations; if it is `None`, the words name no loop. `inner` are the loops within it: if
    `_around` finds one among them, the place is after that whole loop. If both lines are the same, the place is before
    or after the line.
    """
    where = "" if loop is None else f"in the loop at lines {loop.first}-{loop.last}, "
    if first == second:
        return f"{where}before or after line {first}, which different threads execute"
    around = _around(inner, first, second)
    after = f"line {second}" if around is None else f"the inner loop at lines {around.first}-{around.last}"
    return f"{where}after {after} and before line {first} is reached again"


def _around(loops: Iterable[Loop], first: int, second: int) -> Loop | None:
    """Return the outermost of the loops that contain line `second` and whose bodies lack line `first`.

    `None` if there is none, or if that loop is on a single line.
    """
    found = [loop for loop in loops if loop.first <= second <= loop.last and not loop.first < first <= loop.last]
    widest = max(found, key=lambda loop: loop.last - loop.first, default=None)
    return widest if widest is not None and widest.first < widest.last else None


def _join(cure: _Cure, other: _Cure) -> bool:
    """Add the races of `other` to `cure` if one barrier can order them all; return whether it can."""
    both = _spans((max(a, c), min(b, d)) for a, b in cure.spans for c, d in other.spans)
    if cure.file != other.file or not both:
        return False
    cure.spans, cure.lines = both, [*cure.lines, *other.lines]
    if cure.loop is None:
        cure.loop, cure.inner = other.loop, other.inner
    cure.what = _THREADS if _THREADS in (cure.what, other.what) else _WARP
    return True


def _spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    return tuple(sorted((first, last) for first, last in spans if first < last))
