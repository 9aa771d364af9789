"""Errors that a kernel makes when it runs, as plain values that any device may produce."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

RACE = "race"
"""Kind of hazard: accesses of several threads to one element, of which at least one writes, without an order."""
OUTSIDE = "out of bounds"
"""Kind of hazard: an access outside all arrays of its memory."""
BARRIER = "barrier"
"""Kind of hazard: a barrier that not all threads reach together."""
WARP_SYNC = "warp sync"
"""Kind of hazard: an instruction for which a warp's lanes wait, and some of them never come."""
UNWRITTEN = "unwritten"
"""Kind of hazard: a read of memory that nothing has written."""
UNFINISHED = "unfinished"
"""Kind of hazard: the launch was stopped because it executed too many instructions."""
CLUSTER = "cluster"
"""Kind of hazard: nothing was launched because the grid does not consist of whole clusters."""
TWO_WRITES = "two threads write the same element"
"""Words of a race's message if both accesses are plain writes of global memory: a barrier is no remedy then."""
STOPPING = frozenset({"deadlock", "endless loop", "trap", "call", UNFINISHED, CLUSTER})
"""Kinds of hazards that end a launch: memory that it had not written yet is unchanged."""


@dataclass(frozen=True, slots=True)
class Hazard:
    """A kernel's error at one place in its code; `count` says how often it happened there."""

    kind: str
    """`"out of bounds"`, `"misaligned"`, `"unwritten"`, `"race"`, `"barrier"`, `"async copy"`, `"deadlock"`, ..."""
    kernel: str
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    """The first thread that made the error, in `block`."""
    address: int | None
    """The first address with the error, as the kernel computes it."""
    file: str = ""
    line: int = 0
    other_line: int = 0
    """Line of the other access of a race; 0 if there is none."""
    count: int = 1
    message: str = ""
    other_file: str = ""
    """The file of `other_line` if it is another one than `file`."""
    space: str = ""
    """Memory of the access: `"global"`, `"shared"`, `"local"`, `"constant"`; empty if the error is no access."""
    array: str = ""
    """Name of the array in the source, if its lines name one array of that memory."""
    text: str = ""
    """Source text of `line`, if it is at hand (`core.hazard_source`)."""
    other_text: str = ""
    """Source text of `other_line`, likewise."""
    called_from: str = ""
    """The line of the kernel's own file, `mine.cu:12`, that calls the function of `line`, if that is known; in a
    function that was inlined itself, `mine.cu:12, from mine.cu:40`."""
    other_called_from: str = ""
    """The same of `other_line`."""
    instruction: int = field(default=-1, compare=False, repr=False)
    """Byte address of the instruction in the loaded code; -1 if the hazard has none."""
    other_instruction: int = field(default=-1, compare=False, repr=False)
    """The same of the other access."""

    @property
    def place(self) -> str:
        """`tile.cuh:3 called from mine.cu:12`, or the kernel's name if the line is not known."""
        where = f"{Path(self.file).name}:{self.line}" if self.line else self.kernel
        return f"{where} called from {self.called_from}" if self.called_from else where

    def explain(self) -> str:
        """Return the hazard as one sentence."""
        where = f"{self.file or self.kernel}:{self.line}" if self.line else self.kernel
        where += f" `{self.text}`" if self.text else ""
        where += f" called from {self.called_from}" if self.called_from else ""
        there = f"{self.other_file}:" if self.other_file else "line "
        other = f" and {there}{self.other_line}" if self.other_line else ""
        other += f" `{self.other_text}`" if self.other_text else ""
        other += f" called from {self.other_called_from}" if self.other_line and self.other_called_from else ""
        at = "" if self.address is None else f", address 0x{self.address:x}"
        often = "" if self.count == 1 else f", {self.count} times"
        detail = f": {self.message}" if self.message else ""
        array = f"array {self.array}, " if self.array else ""
        who = f"{array}kernel {self.kernel}, block {self.block}, thread {self.thread}"
        return f"{self.kind} at {where}{other} ({who}{at}{often}){detail}"

    def without_folders(self) -> Hazard:
        """Return the hazard with bare names of files, which are the same on every machine."""
        return replace(self, file=Path(self.file).name, other_file=Path(self.other_file).name)
