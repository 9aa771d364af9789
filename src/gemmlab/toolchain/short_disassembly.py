"""Shorten nvdisasm's text for shipping, and restore it exactly.

The text has the address of each instruction, and its encoding in hexadecimal on two lines. They hardly compress: they
are more than half of a packed text. Both are known from the cubin. So an instruction is shipped as one line: a mark and
the text between address and encoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gemmlab.toolchain.elf import read_elf

_MARK = "~"
"""Begins a shortened line. No line of nvdisasm begins so."""
_SECTION = re.compile(r"\s*\.section\s+(\.text\.[^,\s]+)")
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/(.*?) */\* 0x[0-9a-f]{16} \*/$")
_WORD, _STEP = 8, 16
"""Bytes of an encoding's half, and of an instruction."""


@dataclass(slots=True)
class _Place:
    """The place in the text: what the next instruction's address, encoding and column follow from."""

    sections: Mapping[str, bytes] = field(repr=False)
    code: bytes = field(default=b"", repr=False)
    """Contents of the code section of the current function."""
    at: int = 0
    """Address of the next instruction."""
    column: int = 0
    """Number of characters before an encoding."""

    def pair(self, body: str) -> list[str]:
        """Return both lines of the next instruction. `body` is the text between its address and its encoding."""
        low, high = (int.from_bytes(self.code[at : at + _WORD], "little") for at in (self.at, self.at + _WORD))
        begin = f"        /*{self.at:04x}*/{body}".ljust(self.column)
        return [f"{begin}/* 0x{low:016x} */", f"{'':{self.column}}/* 0x{high:016x} */"]

    def follow(self, line: str) -> None:
        """Take in a line that was not shortened."""
        if section := _SECTION.match(line):
            self.code, self.at = self.sections.get(section[1], b""), 0
        elif whole := _INSTRUCTION.match(line):
            self.at, self.column = int(whole[1], 16) + _STEP, line.rindex("/*")


def shortened(text: str, cubin: bytes, name: str) -> str:
    """Return nvdisasm's text of a cubin without what `restored` finds in the cubin. `name` names it in errors."""
    place = _start(cubin, name)
    return "\n".join(_shortened(text.split("\n"), place))


def restored(short: str, cubin: bytes, name: str) -> str:
    """Return the text of which `shortened` made `short` with the same cubin. `name` names it in errors."""
    place = _start(cubin, name)
    lines: list[str] = []
    for line in short.split("\n"):
        if line.startswith(_MARK):
            lines += place.pair(line.removeprefix(_MARK))
            place.at += _STEP
        else:
            lines.append(line)
            place.follow(line)
    return "\n".join(lines)


def _shortened(lines: list[str], place: _Place) -> Iterator[str]:
    """Yield the short text of a whole cubin's `lines`. An instruction that would not be restored exactly stays as it
    is: the first one, from which `place` learns the column of the encodings, and the next one after a change of the
    layout.
    """
    at = 0
    while at < len(lines):
        found = _INSTRUCTION.match(lines[at])
        if found and place.pair(found[2]) == lines[at : at + 2]:
            yield _MARK + found[2]
            place.at += _STEP
            at += 2
        else:
            yield lines[at]
            place.follow(lines[at])
            at += 1


def _start(cubin: bytes, name: str) -> _Place:
    return _Place({section.name: section.data for section in read_elf(cubin, name).sections})
