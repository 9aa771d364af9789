"""A cubin with changed or reordered instruction words in one of its functions.

The code is replaced. If the order changed, so are relative targets, attributes with instruction offsets, relocations
and line tables; with other lines, line tables alone. Only line tables may change in size; one that grows moves to the
end of the file, and its section header says so. All other bytes stay.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gemmlab.core.errors import UsageError
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.writing.line_table import with_lines
from gemmlab.sass.writing.relocate import moved_attributes, moved_relocations, moved_word, new_addresses
from gemmlab.sass.writing.slots import EncodingError
from gemmlab.toolchain.elf import REL, RELA, read_elf

_HEADERS_AT, _SECTION_BYTES = 0x28, 64
_LINE_TABLES = (".debug_line", ".nv_debug_line_sass")


@dataclass(slots=True)
class _File:
    data: bytearray
    headers: int
    """Offset of the section headers."""

    def offset(self, index: int) -> int:
        return int(struct.unpack_from("<Q", self.data, self.headers + index * _SECTION_BYTES + 24)[0])

    def put(self, index: int, content: bytes, room: int) -> None:
        """Write the content of section `index` over the old one, or to the file's end if it exceeds `room` bytes."""
        at = self.offset(index)
        if len(content) > room:
            at = len(self.data)
            self.data += content
        else:
            self.data[at : at + len(content)] = content
        struct.pack_into("<QQ", self.data, self.headers + index * _SECTION_BYTES + 24, at, len(content))


def with_words(
    cubin: bytes, function: SassFunction, words: Sequence[int], order: Sequence[int] | None = None, name: str = "cubin",
    *, lines: Sequence[int] | None = None,
) -> bytes:  # fmt: skip
    """Return the cubin with these instruction words in one function.

    `words[i]` is the new word of instruction i of `function`. `order[j]` is the index i of the instruction that moves
    to place j; by default none moves. `lines[j]` is the index of the instruction whose source line place j has; by
    default that of the instruction there. Raises `EncodingError` if `order` is not a permutation of the instructions,
    if they cannot move as it says, or if lines change in a file with line tables and several functions. Raises
    `UsageError` if the file is not a cubin with that function; messages about the file begin with `name`.
    """
    order = range(len(words)) if order is None else order
    if sorted(order) != list(range(len(function.instructions))) or len(words) != len(order):
        raise EncodingError(
            f"{function.name}: an order has the index of each of the {len(function.instructions)} instructions once"
        )
    elf = read_elf(cubin, name)
    place = next((n for n, s in enumerate(elf.sections) if s.name == f".text.{function.name}"), None)
    if place is None:
        raise UsageError(f"{name}: no code of {function.name} in this file")
    section = elf.sections[place]
    code = b"".join(_in_order(function, words, order))
    if len(code) > len(section.data):
        raise UsageError(f"{name}: {function.name} has {len(section.data)} bytes, not {len(code)}")
    file = _File(bytearray(cubin), struct.unpack_from("<Q", cubin, _HEADERS_AT)[0])
    start = file.offset(place)
    file.data[start : start + len(code)] = code
    moved = new_addresses(order)
    if any(old != new for old, new in moved.items()):
        for index, other in enumerate(elf.sections):
            if other.name == f".nv.info.{function.name}":
                file.put(index, moved_attributes(other.data, moved, name), len(other.data))
            elif other.kind in (REL, RELA) and other.info == place and other.data:
                file.put(index, moved_relocations(other.data, 24 if other.kind == RELA else 16, moved), len(other.data))
    sources = {16 * new: 16 * old for new, old in enumerate(order if lines is None else lines)}
    if any(new != old for new, old in sources.items()):
        functions = sum(section.name.startswith(".text.") for section in elf.sections)
        for index, other in enumerate(elf.sections):
            if other.name in _LINE_TABLES and other.data:
                if functions > 1:
                    raise EncodingError(f"{name}: the order cannot change: {other.name} covers {functions} functions")
                file.put(index, with_lines(other.data, sources), len(other.data))
    return bytes(file.data)


def _in_order(function: SassFunction, words: Sequence[int], order: Sequence[int]) -> Iterator[bytes]:
    for new, old in enumerate(order):
        yield moved_word(function.instructions[old], words[old], 16 * new).to_bytes(16, "little")


__all__ = ["with_words"]
