"""Misuse of wgmma that the machine code no longer shows, because ptxas repaired it: from PTX, and from ptxas's report.

ptxas puts in missing fences and waits, or lets a kernel wait after each multiplication. The PTX is wrong nonetheless:
another version of ptxas may not repair it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gemmlab.core.hazard import Hazard
from gemmlab.emulator.wgmma_registers import gmma_registers
from gemmlab.sass.instruction import SassFunction
from gemmlab.toolchain.ptxas_log import place_in_source

_WAIT_INJECTED = re.compile(
    r"wgmma\.wait_group is injected in around line (\d+) by compiler to allow use of registers defined by GMMA in "
    r"function '([^']+)'"
)
_MULTIPLY = re.compile(r"wgmma\.mma_async\S*\s+\{([^}]*)\}\s*,\s*(?:\{([^}]*)\})?")
_SIZE = re.compile(r"\.m64n(\d+)k(\d+)\.")
_ENTRY = re.compile(r"\.entry\s+(\w+)\s*\(")
_WRITE = re.compile(r"^\s*(?:@!?%\w+\s+)?(\w+)(\.\S+)?\s+(\{[^}]*\}|%\w+(?:\|%\w+)?)\s*,\s*(.*?);")
_NAME = re.compile(r"%\w+")
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


def hazards_of(log: str, ptx: str, function: str, kernel: str) -> tuple[Hazard, ...]:
    """Hazards of the PTX of a function; `kernel` is its name for the reader."""
    found = []
    for match in _WAIT_INJECTED.finditer(log):
        if match[2] == function:
            message = (
                "registers of a multiplication in flight are used before wgmma.wait_group; ptxas put in a wait, and the"
                " machine code is right"
            )
            found.append(_hazard(kernel, ptx, int(match[1]), 0, message))
    for missing in unfenced(ptx, function):
        message = (
            "a multiplication without wgmma.fence behind the last write of its registers; ptxas put one in, and the"
            " machine code is right"
        )
        found.append(_hazard(kernel, ptx, missing.multiplication, missing.write, message))
    return tuple(found)


def _hazard(kernel: str, ptx: str, number: int, other: int, message: str) -> Hazard:
    file, line = place_in_source(ptx, number) or ("PTX", number)
    other_line = (place_in_source(ptx, other) or ("PTX", other))[1] if other else 0
    return Hazard(
        kind="wgmma", kernel=kernel, block=(0, 0, 0), thread=(0, 0, 0), address=None, file=file, line=line,
        other_line=other_line, count=1, message=message,
    )  # fmt: skip


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
            multiplication = _MULTIPLY.search(text)
            if FENCE in text:
                fence = time
            elif multiplication:
                target, left = (_NAME.findall(part or "") for part in multiplication.groups())
                late = _latest(writes, fence, (*target, *left))
                if late is not None or fence < 0:
                    found.setdefault(number, Unfenced(number, late.line if late else 0))
                writes |= dict.fromkeys(target, _Write(time, number, by_wgmma=True))
            else:
                _record(writes, text, _Write(time, number))
    return list(found.values())


def relined(functions: Mapping[str, SassFunction], ptx: str) -> Mapping[str, SassFunction]:
    """Return the functions with the lines of their multiplications taken from the PTX.

    ptxas gives a multiplication no line of its own, so that it has that of the fence before it. Where the PTX has as
    many multiplications of the same sizes in the same order, theirs are right.
    """
    return {name: _relined(function, ptx) for name, function in functions.items()}


def _relined(function: SassFunction, ptx: str) -> SassFunction:
    code = function.instructions
    places = [place for place, instruction in enumerate(code) if any(gmma_registers(instruction) or ())]
    if not places:
        return function
    stated = [(number, _SIZE.search(text)) for number, text in body_of(ptx, function.name) if _MULTIPLY.search(text)]
    sizes = [f"64x{size[1]}x{size[2]}" if size else "" for _number, size in stated]
    if sizes != [code[place].modifiers[0] for place in places]:
        return function
    lines = {
        place: place_in_source(ptx, number) or code[place].line
        for place, (number, _size) in zip(places, stated, strict=True)
    }
    return replace(
        function,
        instructions=tuple(
            replace(instruction, line=lines.get(place, instruction.line)) for place, instruction in enumerate(code)
        ),
    )


def body_of(ptx: str, function: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a function with their numbers from 1."""
    inside = False
    for number, line in enumerate(ptx.splitlines(), 1):
        if entry := _ENTRY.search(line):
            inside = entry[1] == function
        elif inside:
            yield number, line


def _latest(writes: dict[str, _Write], fence: int, names: Sequence[str]) -> _Write | None:
    """Return the last write since the fence to a register in `names` that no multiplication made, or `None`."""
    late = [
        writes[name] for name in names if name in writes and writes[name].time > fence and not writes[name].by_wgmma
    ]
    return max(late, key=lambda write: write.time, default=None)


def _record(writes: dict[str, _Write], text: str, write: _Write) -> None:
    match = _WRITE.match(text)
    if match is None or match[1] in _WITHOUT_RESULT:
        return
    results, sources = _NAME.findall(match[3]), _NAME.findall(match[4])
    if match[1] == "mov":
        # A copy is as old as what it copies; a constant is of no age.
        origin = writes.get(sources[0]) if sources else None
        for name in results:
            writes.pop(name, None)
            if origin is not None:
                writes[name] = origin
        return
    writes.update(dict.fromkeys(results, write))
