"""Line tables of a cubin for reordered or new instructions.

A line table is a program for a small state machine that makes rows (address, file, line, ...) by ascending address
(DWARF 2, section 6.2). NVIDIA's compiler adds two extended operations: 0x90 (number of the row of the call by which a
line was inlined, and the function's name) and 0x91, whose bytes are copied without change.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gemmlab.core.errors import UsageError

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _FILE, _COLUMN = 1, 2, 3, 4, 5
_NEGATE, _BLOCK, _CONST_ADD, _FIXED_ADVANCE = 6, 7, 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2
_INLINED = 0x90


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a line table.

    `extended` has (kind, bytes) of the latest extended operation of each kind before the row, without those that end
    the sequence or set an address.
    """

    address: int
    line: int
    file: int
    column: int
    statement: bool
    extended: tuple[tuple[int, bytes], ...]


def with_lines(data: bytes, sources: Mapping[int, int]) -> bytes:
    """Return a line section, such as `.debug_line`, for other instructions.

    `sources` maps the address of each to the old address of an instruction that has its line, both in bytes. Raises
    `UsageError` if the section is malformed.
    """
    try:
        return b"".join(_unit(data, start, stop, sources) for start, stop in _units(data))
    except (struct.error, IndexError) as error:
        raise UsageError(f"a malformed line table: {error}") from error


def _units(data: bytes) -> list[tuple[int, int]]:
    found, at = [], 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        found.append((at, at + 4 + length))
        at += 4 + length
    return found


def _unit(data: bytes, start: int, stop: int, sources: Mapping[int, int]) -> bytes:
    (header,) = struct.unpack_from("<I", data, start + 6)
    program = start + 10 + header
    least, is_stmt, line_base, line_range, opcode_base = struct.unpack_from("<BBbBB", data, start + 10)
    lengths = data[start + 15 : start + 14 + opcode_base]
    made = bytearray()
    at = program
    while at < stop:
        rows, address, end, at = _sequence(
            data, at, stop, (least, bool(is_stmt), line_base, line_range, opcode_base, lengths)
        )
        made += _written(_placed(rows, sources), address, end, bool(is_stmt), least)
    body = data[start + 4 : program] + bytes(made)
    return struct.pack("<I", len(body)) + body


def _sequence(
    data: bytes, at: int, stop: int, facts: tuple[int, bool, int, int, int, bytes]
) -> tuple[list[Row], bytes, int, int]:
    """Return (rows, bytes that set the first address, end address, offset of the next sequence) of the sequence at
    `at`.

    `facts` are fields of the header: bytes of the smallest instruction, first `is_stmt`, line base, line range, first
    special opcode, and numbers of operands. Raises `UsageError` if the sequence has no end before `stop`.
    """
    least, is_stmt, line_base, line_range, opcode_base, lengths = facts
    row = Row(0, 1, 1, 0, is_stmt, ())
    rows, setting = list[Row](), b""
    while at < stop:
        opcode = data[at]
        begin, at = at, at + 1
        if opcode >= opcode_base:
            step, line = divmod(opcode - opcode_base, line_range)
            row = replace(row, address=row.address + step * least, line=row.line + line_base + line)
            rows.append(row)
        elif opcode == 0:
            size, at = _unsigned(data, at)
            kind, operation, at = data[at], data[begin : at + size], at + size
            if kind == _END_SEQUENCE:
                return rows, setting, row.address, at
            if kind == _SET_ADDRESS:
                setting = operation
            else:
                others = tuple(pair for pair in row.extended if pair[0] != kind)
                row = replace(row, extended=(*others, (kind, operation)))
        elif opcode == _COPY:
            rows.append(row)
        elif opcode == _ADVANCE_PC:
            step, at = _unsigned(data, at)
            row = replace(row, address=row.address + step * least)
        elif opcode == _ADVANCE_LINE:
            step, at = _signed(data, at)
            row = replace(row, line=row.line + step)
        elif opcode == _FILE:
            number, at = _unsigned(data, at)
            row = replace(row, file=number)
        elif opcode == _COLUMN:
            number, at = _unsigned(data, at)
            row = replace(row, column=number)
        elif opcode == _NEGATE:
            row = replace(row, statement=not row.statement)
        elif opcode == _CONST_ADD:
            row = replace(row, address=row.address + (255 - opcode_base) // line_range * least)
        elif opcode == _FIXED_ADVANCE:
            row = replace(row, address=row.address + struct.unpack_from("<H", data, at)[0])
            at += 2
        else:
            for _ in range(lengths[opcode - 1]):
                _, at = _unsigned(data, at)
    raise UsageError("a malformed line table: a sequence without an end")


def _placed(rows: list[Row], sources: Mapping[int, int]) -> list[Row]:
    """Return the rows of the instructions of `sources`, by address, with the numbers of their callers.

    An instruction without a row of its own takes the row before it. A row that repeats the one before is left out. The
    row of a caller that no instruction before has stands right before the first row that it calls, at its address.
    """
    at_address = {row.address: row for row in rows}
    in_force: Row | None = None
    by_old = dict[int, Row]()
    for old in sorted({*sources.values(), *at_address}):
        in_force = at_address.get(old, in_force)
        if in_force is not None:
            by_old[old] = in_force
    numbers = {id(row): number for number, row in enumerate(rows, 1)}
    found, new_number = list[Row](), dict[int, int]()

    def put(row: Row, address: int) -> None:
        caller = _caller(row)
        if 0 < caller <= len(rows) and caller not in new_number:
            put(rows[caller - 1], address)
        made = _called_by(replace(row, address=address), new_number.get(caller, 0))
        if not found or replace(found[-1], address=address) != made:
            found.append(made)
        new_number.setdefault(numbers[id(row)], len(found))

    for new, old in sorted(sources.items()):
        if old in by_old:
            put(by_old[old], new)
    return found


def _caller(row: Row) -> int:
    """Return the number, from 1, of the row by whose call the row was inlined; 0: none."""
    operation = next((operation for kind, operation in row.extended if kind == _INLINED), b"")
    return _unsigned(operation, _unsigned(operation, 1)[1] + 1)[0] if operation else 0


def _called_by(row: Row, caller: int) -> Row:
    """Return the row with another number of the caller; a row that was not inlined states 0."""
    operation = next((operation for kind, operation in row.extended if kind == _INLINED), b"")
    rest = operation[_unsigned(operation, _unsigned(operation, 1)[1] + 1)[1] :] if operation else b"\0"
    body = bytes([_INLINED]) + _uleb(caller) + rest
    others = tuple(pair for pair in row.extended if pair[0] != _INLINED)
    return replace(row, extended=(*others, (_INLINED, b"\0" + _uleb(len(body)) + body)))


def _written(rows: list[Row], setting: bytes, end: int, is_stmt: bool, least: int) -> bytes:
    made = bytearray(setting)
    now = Row(0, 1, 1, 0, is_stmt, ())
    for row in rows:
        for pair in row.extended:
            if pair not in now.extended:
                made += pair[1]
        if row.file != now.file:
            made += bytes([_FILE]) + _uleb(row.file)
        if row.column != now.column:
            made += bytes([_COLUMN]) + _uleb(row.column)
        if row.statement != now.statement:
            made.append(_NEGATE)
        if row.line != now.line:
            made += bytes([_ADVANCE_LINE]) + _sleb(row.line - now.line)
        if row.address != now.address:
            made += bytes([_ADVANCE_PC]) + _uleb((row.address - now.address) // least)
        made.append(_COPY)
        now = row
    return bytes(made) + bytes([_ADVANCE_PC]) + _uleb((end - now.address) // least) + bytes([0, 1, _END_SEQUENCE])


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not byte & 0x80:
            return value, at


def _signed(data: bytes, at: int) -> tuple[int, int]:
    value, after = _unsigned(data, at)
    bits = 7 * (after - at)
    return value - (1 << bits) if value >> bits - 1 else value, after


def _uleb(value: int) -> bytes:
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def _sleb(value: int) -> bytes:
    made = bytearray()
    while not -64 <= value < 64:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value & 0x7F])
