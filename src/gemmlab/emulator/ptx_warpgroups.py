"""Warpgroup multiplications in PTX without a `wgmma.fence` between the last write of their registers and themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gemmlab.sass.gmma_lines import MULTIPLY
from gemmlab.toolchain.ptxas_log import body_of

WRITE = re.compile(r"^\s*(?:@!?%?\w+\s+)?(\w+)(\.\S+)?\s+(\{[^}]*\}|%?\w+(?:\|%?\w+)?)\s*,\s*(.*?);")
NAME = re.compile(r"(?<![\w.%])%?[A-Za-z_]\w*")
"""Pattern of a register's name; inline assembly may give its own ones names without `%`."""
_WITHOUT_RESULT = frozenset({"st", "red", "bra", "bar", "wgmma", "prefetch", "cp", "fence", "mbarrier", "ret"})
FENCE = "wgmma.fence"
PASSES = 2
"""Passes over the code. The second one finds writes in one iteration of a loop to registers of a multiplication in a
later one."""


@dataclass(frozen=True, slots=True)
class Unfenced:
    """PTX line numbers of a multiplication, and of the write of one of its registers that no fence follows."""

    multiplication: int
    write: int
    """0 if no such write was found: then the multiplication has no fence before it at all."""


@dataclass(frozen=True, slots=True)
class _Write:
    time: int
    line: int
    by_wgmma: bool = False


def unfenced(ptx: str, function: str) -> list[Unfenced]:
    """Return the multiplications with a register written after the last fence, or without any fence before them.

    A copy between registers has the time of the write that it copies, and a write of a constant does not count, because
    the compiler places them anywhere; nor do writes of other multiplications.
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
    """Return the last write after time `fence` to a register in `names`, not counting those of multiplications."""
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
        # A copy has the time of the write that it copies; a constant has none.
        origin = writes.get(sources[0]) if sources else None
        for name in results:
            writes.pop(name, None)
            if origin is not None:
                writes[name] = origin
        return
    writes.update(dict.fromkeys(results, write))
