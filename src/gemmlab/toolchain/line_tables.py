"""Read the line tables of a cubin. They have, for each instruction, its source line, the lines of the calls by which it
was inlined, and its line of PTX.

The tables are DWARF line programs (version 2, sections `.debug_line` and `.nv_debug_line_sass`) with two opcodes of
NVIDIA's, which LLVM's NVPTX backend and binutils name `DW_LNE_NVIDIA_inlined_call` and `..._set_function_name`.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gemmlab.core.errors import UsageError
from gemmlab.toolchain.elf import REL, RELA, Elf, Section, read_elf

SOURCE, PTX, PTX_TEXT = ".debug_line", ".nv_debug_line_sass", ".nv_debug_ptx_txt"
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _COLUMN, _NEGATE, _BASIC, _ADD_PC, _FIXED_PC = range(1, 10)
_END, _ADDRESS, _DEFINE_FILE, _INLINED, _FUNCTION = 1, 2, 3, 0x90, 0x91

Place = tuple[str, int]
"""A place in the source: file name as the compiler got it, and line counted from 1."""


@dataclass(frozen=True, slots=True)
class FunctionLines:
    """The line tables of one function. Rows are sorted by address; each is valid up to the next one's address."""

    source: tuple[tuple[int, tuple[Place, ...]], ...] = field(repr=False)
    """Rows (byte address in the function, places): first the instruction's place, then that of the call by which it was
    inlined, and so on outwards.
    """
    ptx: tuple[tuple[int, int], ...] = field(repr=False)
    """Rows (byte address in the function, line of the PTX text, counted from 1)."""

    def places(self, address: int) -> tuple[Place, ...]:
        """Return an instruction's place, then those of the calls by which it was inlined; empty if unknown."""
        at = bisect_right(self.source, address, key=lambda row: row[0])
        return self.source[at - 1][1] if at else ()

    def ptx_line(self, address: int) -> int:
        """Return the PTX line of an instruction, 0 if unknown."""
        at = bisect_right(self.ptx, address, key=lambda row: row[0])
        return self.ptx[at - 1][1] if at else 0


@dataclass(frozen=True, slots=True)
class LineTables:
    """All line tables of a cubin."""

    functions: Mapping[str, FunctionLines]
    """Mangled name -> the function's tables. Functions without source lines are left out."""
    ptx: tuple[str, ...] = field(repr=False)
    """Lines of the PTX from which the code was assembled; empty if the cubin does not contain it."""


def read_line_tables(cubin: bytes, name: str) -> LineTables:
    """Read the line tables of a cubin; without line information they are empty.

    Raises `UsageError` with `name` for a malformed file.
    """
    elf = read_elf(cubin, name)
    # Cubins of the package's archive have zeros in place of the tables.
    sections = {section.name: section for section in elf.sections if any(section.data)}
    try:
        source = _by_function(elf, sections, SOURCE)
        ptx = _by_function(elf, sections, PTX)
    except (struct.error, IndexError, ValueError) as error:
        raise UsageError(f"{name}: its line information is malformed: {error}") from error
    text = sections[PTX_TEXT].data if PTX_TEXT in sections else b""
    functions = {
        function: FunctionLines(
            tuple((row.address, _chain(row, rows)) for row in _ordered(rows)),
            tuple((row.address, row.line) for row in _ordered(ptx.get(function, []))),
        )
        for function, rows in source.items()
    }
    return LineTables(functions, tuple(text.decode("utf-8", "replace").rstrip("\0").split("\0")) if text else ())


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of a line table. `caller` is the number, from 1, of the row of the call by which it was inlined; 0:
    none.
    """

    address: int
    file: str
    line: int
    caller: int


@dataclass(slots=True)
class _Reader:
    """A reader of the bytes of a line program, at position `at`."""

    data: bytes
    at: int

    def number(self, layout: str) -> int:
        (value,) = struct.unpack_from(f"<{layout}", self.data, self.at)
        self.at += struct.calcsize(layout)
        return int(value)

    def leb(self, *, signed: bool = False) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        found = self.data[self.at : end].decode("utf-8", "replace")
        self.at = end + 1
        return found


def _by_function(elf: Elf, sections: Mapping[str, Section], name: str) -> dict[str, list[_Row]]:
    """Return the rows of section `name` by function. A relocation names the function of each sequence of rows."""
    if name not in sections:
        return {}
    section = sections[name]
    owners = {
        entry.offset: elf.symbols[entry.symbol].name
        for table in elf.sections
        if table.kind in (REL, RELA) and table.info < len(elf.sections) and elf.sections[table.info] is section
        for entry in elf.relocations(table)
    }
    found: dict[str, list[_Row]] = {}
    reader = _Reader(section.data, 0)
    while reader.at + 4 < len(section.data):
        end = reader.number("I") + reader.at
        for owner, row in _unit(reader, end, owners):
            found.setdefault(owner.removeprefix(".text."), []).append(row)
        reader.at = end
    return found


def _unit(reader: _Reader, end: int, owners: Mapping[int, str]) -> Iterator[tuple[str, _Row]]:
    """Yield (code section of the function, row) for each row of the line program that ends at byte `end`.

    `owners` is a mapping from the offset of a relocation in the reader's data to the code section that it names.
    """
    version = reader.number("H")
    program = reader.number("I") + reader.at
    if version not in (2, 3):
        raise ValueError(f"a line program of version {version}")
    step, _statement, base, span, first_special = (reader.number(layout) for layout in "BBbBB")
    lengths = [reader.number("B") for _ in range(first_special - 1)]
    folders, files = [""], [""]
    while folder := reader.text():
        folders.append(folder)
    while file := reader.text():
        files.append(_joined(folders, file, reader))
    reader.at = program
    owner, address, file_number, line, caller = "", 0, 1, 1, 0

    def row() -> tuple[str, _Row]:
        return owner, _Row(address, files[file_number] if file_number < len(files) else "", line, caller)

    while reader.at < end:
        opcode = reader.number("B")
        if opcode >= first_special:
            address += (opcode - first_special) // span * step
            line += base + (opcode - first_special) % span
            yield row()
        elif opcode == 0:
            size = reader.leb()
            behind, extended = reader.at + size, reader.number("B")
            if extended == _END:
                owner, address, file_number, line, caller = "", 0, 1, 1, 0
            elif extended == _ADDRESS:
                owner = owners.get(reader.at, "")
                address = reader.number("Q")
            elif extended == _DEFINE_FILE:
                files.append(_joined(folders, reader.text(), reader))
            elif extended == _INLINED:
                caller = reader.leb()
            reader.at = behind
        elif opcode == _COPY:
            yield row()
        elif opcode == _ADVANCE_PC:
            address += reader.leb() * step
        elif opcode == _ADVANCE_LINE:
            line += reader.leb(signed=True)
        elif opcode == _SET_FILE:
            file_number = reader.leb()
        elif opcode == _ADD_PC:
            address += (255 - first_special) // span * step
        elif opcode == _FIXED_PC:
            address += reader.number("H")
        elif opcode not in (_NEGATE, _BASIC):
            for _ in range(lengths[opcode - 1]):
                reader.leb()


def _joined(folders: list[str], file: str, reader: _Reader) -> str:
    folder, _time, _size = reader.leb(), reader.leb(), reader.leb()
    return f"{folders[folder]}/{file}" if folder else file


def _ordered(rows: list[_Row]) -> list[_Row]:
    """Return the rows by ascending address; of several rows at one address, only the one latest in the table."""
    return [row for _, row in sorted({row.address: row for row in rows}.items())]


def _chain(row: _Row, rows: list[_Row]) -> tuple[Place, ...]:
    """Return the place of a row, and then those of the calls by which it was inlined, outwards."""
    found = [(row.file, row.line)]
    while 0 < row.caller <= len(rows) and len(found) <= len(rows):
        row = rows[row.caller - 1]
        found.append((row.file, row.line))
    return tuple(found)
