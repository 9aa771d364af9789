"""Read ptxas's log on a kernel (`--ptxas-options=-v`): resources as numbers, errors and remarks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath

_ENTRY = re.compile(r"^ptxas info\s*: Compiling entry function '([^']+)'.*$", re.MULTILINE)
_OWN = {
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "registers": re.compile(r"Used (\d+) registers"),
    "barriers": re.compile(r"used (\d+) barriers"),
    "static_smem_bytes": re.compile(r"(\d+) bytes smem"),
}
_WITH_CALLEES = {
    "spill_stores": re.compile(r"(\d+) bytes spill stores"),
    "spill_loads": re.compile(r"(\d+) bytes spill loads"),
}
_UNSTABLE = re.compile(r"^ptxas info\s*: Compile time = .*\n?", re.MULTILINE)
_REPORT = re.compile(r"^ptxas (?:info\s*:| {8,}\.).*\n?", re.MULTILINE)
_SERIALIZED = re.compile(
    r"wgmma\.mma_async instructions are serialized due to (.*?)(?: in the function| in function) '([^']+)'"
    r"(?: in line (\d+))?"
)
_IGNORED = re.compile(r"'setmaxnreg' ignored;? *(?:to )?([^\n]*)")
_PTX_LINE = re.compile(r"^ptxas application ptx input, line (\d+); (\w+)\s*:", re.MULTILINE)
_KERNEL = re.compile(r"\.entry\s+(\w+)\s*\(")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]+)"', re.MULTILINE)
_PLACE = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s")


def stable(log: str) -> str:
    """Return the log without the times that differ from run to run."""
    return _UNSTABLE.sub("", log.replace("\0", "")).strip()


def facts_of(log: str, entry: str) -> dict[str, int]:
    """Return the figures in the log for the kernel `entry` (a mangled name) by name, such as `registers`.

    Spills include those of the functions that the kernel calls. Figures that the log lacks are left out.
    """
    # The functions that a kernel calls follow it, up to the next kernel.
    _, *blocks = _ENTRY.split(log)
    block = dict(zip(blocks[::2], blocks[1::2], strict=True)).get(entry, "")
    facts = {name: int(found[1]) for name, pattern in _OWN.items() if (found := pattern.search(block))}
    for name, pattern in _WITH_CALLEES.items():
        if amounts := pattern.findall(block):
            facts[name] = sum(map(int, amounts))
    return facts


def errors(log: str, ptx: str) -> str:
    """Return a failed run's log without the report on resources, and with `file(line)` of the source for lines of
    PTX.
    """

    def locate(match: re.Match[str]) -> str:
        place = place_in_source(ptx, int(match[1]))
        return f"{place[0]}({place[1]}): {match[2]}:" if place else match[0]

    return _PTX_LINE.sub(locate, _REPORT.sub("", log))


@dataclass(frozen=True, slots=True)
class Remark:
    """A change by ptxas that makes a kernel differ from its PTX, with `file` and `line` of the source."""

    text: str
    """The reason that ptxas gives, word for word."""
    file: str
    line: int
    """Line in the source, counted from 1; 0 if unknown."""

    @property
    def place(self) -> str:
        """File and line of the source, such as `mine.cu:12`; empty if unknown."""
        return f"{PurePath(self.file).name}:{self.line}" if self.line else ""


def serialized(log: str, ptx: str, entry: str) -> Remark | None:
    """Return ptxas's remark that it made the kernel `entry` wait after each warpgroup multiplication; `None` without
    one.

    `entry` is a mangled name.
    """
    for match in _SERIALIZED.finditer(log):
        if match[2] == entry:
            return Remark(match[1], *(place_in_source(ptx, int(match[3])) if match[3] else None) or ("", 0))
    return None


def setmaxnreg_ignored(log: str, ptx: str, entry: str) -> Remark | None:
    """Return ptxas's remark that it ignored `setmaxnreg`; `None` without one, or if its PTX has none.

    The log names no kernel: the caller must leave out a kernel whose machine code has the instruction. The place is
    that of the kernel's first `setmaxnreg`. `entry` is a mangled name.
    """
    match = _IGNORED.search(log)
    number = next((number for number, line in body_of(ptx, entry) if "setmaxnreg." in line), None)
    if match is None or number is None:
        return None
    return Remark(match[1], *(place_in_source(ptx, number) or ("", 0)))


def body_of(ptx: str, function: str) -> Iterator[tuple[int, str]]:
    """Yield (number, text) of the PTX lines from after a function's `.entry` line to the next `.entry` line.

    Lines are numbered from 1 within the whole PTX.
    """
    inside = False
    for number, line in enumerate(ptx.splitlines(), 1):
        if entry := _KERNEL.search(line):
            inside = entry[1] == function
        elif inside:
            yield number, line


def place_in_source(ptx: str, number: int) -> tuple[str, int] | None:
    """Return file and line of the source for a line of PTX, counted from 1; `None` if the PTX does not say."""
    return _places(ptx)[number]


@lru_cache(maxsize=4)
def _places(ptx: str) -> tuple[tuple[str, int] | None, ...]:
    """Return the place in the source of each line of PTX, by its number; `None` for line 0 and for unknown places."""
    files = dict(_FILE.findall(ptx))
    found: list[tuple[str, int] | None] = [None]
    for line in ptx.splitlines():
        place = _PLACE.match(line)
        found.append((files.get(place[1], "PTX"), int(place[2])) if place else found[-1])
    return tuple(found)
