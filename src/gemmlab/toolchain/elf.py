"""Read sections, symbols and relocations of a 64-bit little-endian ELF file, and check them against its length."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from gemmlab.core.errors import UsageError

PROGBITS, SYMTAB, RELA, NOBITS, REL = 1, 2, 4, 8, 9
ALLOCATED = 2
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    kind: int
    flags: int
    data: bytes
    """Contents; empty for a section of zeros (`NOBITS`), which has `size` bytes."""
    size: int
    link: int
    info: int
    align: int
    start: int = 0
    """Offset of the contents in the file."""


@dataclass(frozen=True, slots=True)
class Symbol:
    name: str
    kind: int
    """ELF's type of the symbol: 0 none, 1 object, 2 function, 3 section."""
    other: int
    section: int
    """Index of the section that contains the symbol; 0 if another file defines it."""
    value: int
    size: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One relocation as the file has it: `symbol` is an index; `addend` is `None` in a `REL` section, which has
    none.
    """

    offset: int
    kind: int
    symbol: int
    addend: int | None


@dataclass(frozen=True, slots=True)
class Elf:
    machine: int
    flags: int
    abi_version: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    def section_of(self, symbol: Symbol) -> Section | None:
        """Return the section that contains a symbol; `None` if no section of this file does."""
        return self.sections[symbol.section] if 0 < symbol.section < len(self.sections) else None

    def relocations(self, section: Section) -> Iterator[Entry]:
        """Yield the relocations in a `REL` or `RELA` section."""
        layout = "<QQq" if section.kind == RELA else "<QQ"
        for offset, info, *addend in struct.iter_unpack(layout, section.data):
            yield Entry(offset, info & 0xFFFFFFFF, info >> 32, addend[0] if addend else None)


def read_elf(data: bytes, name: str) -> Elf:
    """Parse an ELF file. Raises `UsageError` with `name` and the fault for a malformed one."""
    if not data.startswith(b"\x7fELF"):
        raise UsageError(f"{name}: not an ELF file (it begins with {data[:4].hex(' ') or 'nothing'})")
    if len(data) < _HEADER.size:
        raise UsageError(f"{name}: truncated: {len(data)} bytes, and an ELF header has {_HEADER.size}")
    ident, _, machine, _, _, _, at, flags, _, _, _, entry, count, names = _HEADER.unpack_from(data)
    if ident[4:6] != b"\x02\x01":
        raise UsageError(f"{name}: not a 64-bit little-endian ELF file")
    if entry != _SECTION.size or at + count * entry > len(data) or names >= max(count, 1):
        raise UsageError(
            f"{name}: truncated: {len(data)} bytes, and its {count} section headers would begin at byte {at}"
        )
    raw = [_SECTION.unpack_from(data, at + index * entry) for index in range(count)]
    for _, kind, _, _, start, size, *_ in raw:
        if kind not in {0, NOBITS} and start + size > len(data):
            raise UsageError(f"{name}: truncated: {len(data)} bytes, and a section ends at byte {start + size}")
    strings = _content(data, raw[names]) if raw else b""
    sections = tuple(
        Section(_string(strings, row[0]), row[1], row[2], _content(data, row), row[5], row[6], row[7], row[8], row[4])
        for row in raw
    )
    return Elf(machine, flags, ident[8], sections, tuple(_symbols(sections, name)))


def _symbols(sections: tuple[Section, ...], name: str) -> Iterator[Symbol]:
    for section in sections:
        if section.kind == SYMTAB:
            if len(section.data) % _SYMBOL.size or section.link >= len(sections):
                raise UsageError(f"{name}: its symbol table is malformed")
            strings = sections[section.link].data
            for text, info, other, where, value, size in _SYMBOL.iter_unpack(section.data):
                yield Symbol(_string(strings, text), info & 15, other, where, value, size)
            return


def _content(data: bytes, row: tuple[int, ...]) -> bytes:
    return b"" if row[1] in {0, NOBITS} else data[row[4] : row[4] + row[5]]


def _string(table: bytes, at: int) -> str:
    return table[at : table.find(b"\0", at)].decode("utf-8", "replace")
