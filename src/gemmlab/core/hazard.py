"""Errors that a kernel makes when it runs, as plain values that any device may produce."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

RACE = "race"
"""Kind of hazard: several threads access one element without an order between them, and at least one writes."""
OUTSIDE = "out of bounds"
"""Kind of hazard: an access outside all arrays of its memory (global, shared, ...)."""
MISALIGNED = "misaligned"
"""Kind of hazard: an access at an address that is no multiple of its width."""
BARRIER = "barrier"
"""Kind of hazard: a barrier of the block that only some of its threads reach together, or that does not exist."""
WARP_SYNC = "warp sync"
"""Kind of hazard: lanes of a warp take part in a common instruction (a shuffle, `__syncwarp()`) that others never
reach, or whose mask lacks them.
"""
UNWRITTEN = "unwritten"
"""Kind of hazard: a read of memory that nothing has written."""
UNFINISHED = "unfinished"
"""Kind of hazard: the launch was stopped because it executed too many instructions."""
CLUSTER = "cluster"
"""Kind of hazard: nothing was launched because the grid does not consist of whole clusters; or a block uses memory of a
block that its cluster lacks, or that has ended.
"""
TWO_WRITES = "two threads write the same element"
"""Words in the message of a race of two plain writes to global memory, for which a barrier is no remedy."""


@dataclass(frozen=True, slots=True)
class Mention:
    """Another source line that has to do with a hazard; `words` say what it does."""

    words: str
    file: str = ""
    line: int = 0
    text: str = ""
    """Source text of `line`; empty if it is not available."""
    called_from: str = ""
    """The line that calls the inlined function in which `line` is, as in `Hazard.called_from`."""
    called_text: str = ""
    """Source text of the line `called_from`, as in `Hazard.called_text`."""
    instruction: int = field(default=-1, compare=False, repr=False)

    def explain(self) -> str:
        """Return the mention as part of a sentence: ``it brings 4,096 bytes at mine.cu:32 `copy_box(...)` ``."""
        return f"{self.words} at {_line_in_words(self.file, self.line, self.text, self.called_from, self.called_text)}"


@dataclass(frozen=True, slots=True)
class Hazard:
    """A kernel's error at one place in its code; `count` says how often it happened there."""

    kind: str
    """The error: `"out of bounds"`, `"misaligned"`, `"unwritten"`, `"race"`, `"barrier"`, `"deadlock"`, ..."""
    kernel: str
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    """The first thread that made the error, in `block`; both are zeros if it is not recorded."""
    address: int | None
    """The first address with the error, as the kernel computes it; `None` if the error has none."""
    file: str = ""
    line: int = 0
    other_line: int = 0
    """Line of the other instruction, such as the other access of a race; 0 if there is none."""
    count: int = 1
    message: str = ""
    other_file: str = ""
    """The file of `other_line` if it is not `file`, else empty."""
    space: str = ""
    """Memory of the access: `"global"`, `"shared"`, `"local"`, `"constant"`; empty if the error is no access or
    its memory is not recorded.
    """
    array: str = ""
    """Name of the accessed array: the only array of that memory that the source lines name, or the one that contains
    `address`; empty if neither is known.
    """
    owner: str = ""
    """The block in whose shared memory `address` is, if that is not `block`: `block 1 of the cluster`; else empty."""
    text: str = ""
    """Source text of `line` (`core.hazard_source`); empty if it is not available."""
    other_text: str = ""
    """Source text of `other_line`; empty if it is not available."""
    called_from: str = ""
    """If `line` is in an inlined function: the line of the kernel's own file that calls it, `mine.cu:12`; if that line
    is in an inlined function too, `mine.cu:12, from mine.cu:40`. Otherwise, or if the caller is unknown, empty."""
    other_called_from: str = ""
    """`called_from` for `other_line`."""
    called_text: str = ""
    """Source text of the line `called_from`, if `line` is inline PTX, which says less to a reader; else empty."""
    other_called_text: str = ""
    """`called_text` for `other_line`."""
    mentions: tuple[Mention, ...] = ()
    """Other source lines that have to do with the hazard."""
    instruction: int = field(default=-1, compare=False, repr=False)
    """Byte address of the instruction in the loaded code; -1 if the hazard has none."""
    other_instruction: int = field(default=-1, compare=False, repr=False)
    """Byte address of the other instruction, as in `other_line`; -1 if there is none."""

    @property
    def place(self) -> str:
        """`mine.cu:12`; in an inlined function `tile.cuh:3 called from mine.cu:12`, for inline PTX `mine.cu:12 (in
        tile.cuh:3)`; the kernel's name if the line is not known.
        """
        if not self.line:
            return self.kernel
        where = f"{Path(self.file).name}:{self.line}"
        if self.called_text:
            return f"{self.called_from} (in {where})"
        return f"{where} called from {self.called_from}" if self.called_from else where

    def explain(self) -> str:
        """Return one line: kind, places, array, kernel, block, thread, address, count, message and mentions."""
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
        """Return the hazard with file names without their folders, which differ from machine to machine."""
        mentions = tuple(replace(each, file=Path(each.file).name) for each in self.mentions)
        return replace(self, file=Path(self.file).name, other_file=Path(self.other_file).name, mentions=mentions)


def is_write(hazard: Hazard) -> bool:
    """Return whether a hazard is an ordinary write. One that is out of bounds or misaligned is not made."""
    return " write of " in hazard.message


def _line_in_words(file: str, line: int, text: str, called_from: str, called_text: str) -> str:
    """Return a line as ``mine.cu:12 `text` `` or, without a file, as ``line 12 `text` ``, and then `called from ...`.

    If `called_from` is given, the file is named without its folders. If `called_text` is given (the line is inline
    PTX), the caller and its text come first and the line follows in parentheses.
    """
    where = f"{Path(file).name if called_from else file}:{line}" if file else f"line {line}"
    if called_text:
        return f"{called_from} `{called_text}` (in {where})"
    quoted = f" `{text}`" if text else ""
    return f"{where}{quoted} called from {called_from}" if called_from else where + quoted
