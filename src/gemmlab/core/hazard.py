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
class Mention:
    """Another line that has to do with a hazard, and what it does."""

    words: str
    file: str = ""
    line: int = 0
    text: str = ""
    """As `Hazard.text`."""
    called_from: str = ""
    """As `Hazard.called_from`."""
    called_text: str = ""
    """As `Hazard.called_text`."""
    instruction: int = field(default=-1, compare=False, repr=False)

    def explain(self) -> str:
        """Return it as part of a sentence: ``it brings 4,096 bytes at mine.cu:32 `copy_box(...)` ``."""
        return f"{self.words} at {_line_in_words(self.file, self.line, self.text, self.called_from, self.called_text)}"


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
    """Name of the array in the source, if its lines name one array of that memory, or its address is in one."""
    owner: str = ""
    """The block whose shared memory has `address`, if it is another one: `block 1 of the cluster`."""
    text: str = ""
    """Source text of `line`, if it is at hand (`core.hazard_source`)."""
    other_text: str = ""
    """Source text of `other_line`, likewise."""
    called_from: str = ""
    """The line of the kernel's own file, `mine.cu:12`, that calls the function of `line`, if that is known; in a
    function that was inlined itself, `mine.cu:12, from mine.cu:40`."""
    other_called_from: str = ""
    """`called_from`, for `other_line`."""
    called_text: str = ""
    """Source text of that line of the kernel's own file if `line` is inline PTX, whose text says less."""
    other_called_text: str = ""
    """`called_text`, for `other_line`."""
    mentions: tuple[Mention, ...] = ()
    """Other lines that have to do with it."""
    instruction: int = field(default=-1, compare=False, repr=False)
    """Byte address of the instruction in the loaded code; -1 if the hazard has none."""
    other_instruction: int = field(default=-1, compare=False, repr=False)
    """The same of the other access."""

    @property
    def place(self) -> str:
        """`tile.cuh:3 called from mine.cu:12`, or the kernel's name if the line is not known."""
        if not self.line:
            return self.kernel
        where = f"{Path(self.file).name}:{self.line}"
        if self.called_text:
            return f"{self.called_from} (in {where})"
        return f"{where} called from {self.called_from}" if self.called_from else where

    def explain(self) -> str:
        """Return the hazard as one sentence."""
        where = self.kernel
        if self.line:
            where = _line_in_words(self.file or self.kernel, self.line, self.text, self.called_from, self.called_text)
        other = ""
        if self.other_line:
            file = self.other_file or (Path(self.file).name if self.other_called_text else "")
            words = _line_in_words(
                file, self.other_line, self.other_text, self.other_called_from, self.other_called_text
            )
            other = f" and {words}"
        at = "" if self.address is None else f", address 0x{self.address:x}"
        often = "" if self.count == 1 else f", {self.count} times"
        detail = "; ".join([self.message, *(mention.explain() for mention in self.mentions)])
        detail = f": {detail}" if detail else ""
        array = f"array {self.array}{f' of {self.owner}' if self.owner else ''}, " if self.array else ""
        who = f"{array}kernel {self.kernel}, block {self.block}, thread {self.thread}"
        return f"{self.kind} at {where}{other} ({who}{at}{often}){detail}"

    def without_folders(self) -> Hazard:
        """Return the hazard with bare names of files, which are the same on every machine."""
        mentions = tuple(replace(each, file=Path(each.file).name) for each in self.mentions)
        return replace(self, file=Path(self.file).name, other_file=Path(self.other_file).name, mentions=mentions)


def _line_in_words(file: str, line: int, text: str, called_from: str, called_text: str) -> str:
    """Return a line as a reader looks for it: ``mine.cu:12 `text` ``, or `line 12`, and the call that leads there.

    A line that another one calls is named without the folders of its file. If it is inline PTX, its caller comes first.
    """
    where = f"{Path(file).name if called_from else file}:{line}" if file else f"line {line}"
    if called_text:
        return f"{called_from} `{called_text}` (in {where})"
    quoted = f" `{text}`" if text else ""
    return f"{where}{quoted} called from {called_from}" if called_from else where + quoted
