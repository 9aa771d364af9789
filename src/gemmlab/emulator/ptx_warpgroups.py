"""Warpgroup multiplications in PTX without `wgmma.fence` behind the last write of their registers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gemmlab.sass.gmma_lines import MULTIPLY, body_of

WRITE = re.compile(r"^\s*(?:@!?%\w+\s+)?(\w+)(\.\S+)?\s+(\{[^}]*\}|%\w+(?:\|%\w+)?)\s*,\s*(.*?);")
NAME = re.compile(r"%\w+")
_WITHOUT_RESULT = frozenset({"st", "red", "bra", "bar", "wgmma", "prefetch", "cp", "fence", "mbarrier", "ret"})
FENCE = "wgmma.fence"
PASSES = 2
"""The second pass through the code finds what one turn of a loop leaves to the next."""


@dataclass(frozen=True, slots=True)
class Unfenced:
    """A multiplication without a fence behind the write of one of its registers: numbers of the PTX's lines."""

    multiplication: int
    write: int
    """0 if the kernel has no fence at all before it."""


@dataclass(frozen=True, slots=True)
class _Write:
    time: int
    line: int
    by_wgmma: bool = False


def unfenced(ptx: str, function: str) -> list[Unfenced]:
    """Return the multiplications of a function whose registers are written behind the last fence, in textual order.

    Copies between registers and constants do not count: the compiler moves them about.
    """
    lines = list(body_of(ptx, function))
    writes: dict[str, _Write] = {}
    fence = -1
    found: dict[int, Unfenced] = {}
    for turn in range(PASSES):
        for index, (number, text) in enumerate(lines):
            time = turn * len(lines) + index
            multiplication = MULTIPLY.search(text)
            if FENCE in text:
                fence = time
            elif multiplication:
                target, left = (NAME.findall(part or "") for part in multiplication.groups())
                late = _latest(writes, fence, (*target, *left))
                if late is not None or fence < 0:
                    found.setdefault(number, Unfenced(number, late.line if late else 0))
                writes |= dict.fromkeys(target, _Write(time, number, by_wgmma=True))
            else:
                _record(writes, text, _Write(time, number))
    return list(found.values())


def _latest(writes: dict[str, _Write], fence: int, names: Sequence[str]) -> _Write | None:
    """Return the last write since the fence to a register in `names` that no multiplication made, or `None`."""
    late = [
        writes[name] for name in names if name in writes and writes[name].time > fence and not writes[name].by_wgmma
    ]
    return max(late, key=lambda write: write.time, default=None)


def _record(writes: dict[str, _Write], text: str, write: _Write) -> None:
    match = WRITE.match(text)
    if match is None or match[1] in _WITHOUT_RESULT:
        return
    results, sources = NAME.findall(match[3]), NAME.findall(match[4])
    if match[1] == "mov":
        # A copy is as old as what it copies; a constant is of no age.
        origin = writes.get(sources[0]) if sources else None
        for name in results:
            writes.pop(name, None)
            if origin is not None:
                writes[name] = origin
        return
    writes.update(dict.fromkeys(results, write))
