"""Decoding of a kernel's machine code into the array of instruction records that the compiled loop executes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import CompileError
from gemmlab.emulator.handlers import handler_addresses
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.isa import table
from gemmlab.emulator.layout import ROW, Warp
from gemmlab.emulator.operand_limits import require_named
from gemmlab.emulator.services import service_addresses
from gemmlab.sass.instruction import Instruction, Operand, SassFunction

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Code:
    """A kernel's decoded instructions, in order.

    `records` has a record of `Insn.SIZE` bytes for each, with its counters at zero. One more record at the end reports
    that a kernel ran past its last instruction.
    """

    name: str
    instructions: tuple[Instruction, ...]
    records: Bytes = field(repr=False)
    start: int
    """Index of the first instruction to execute: 0."""


def decode(function: SassFunction, entries: frozenset[int] = frozenset()) -> Code:
    """Return a function's decoded instructions, with the handlers of all forms compiled.

    `entries`: indices of the first instructions of functions that may be called by address. Raises `UnsupportedError`
    for the first unknown instruction or form. Raises `CompileError` for a function without instructions, for an
    instruction with too many operands, and for one with a register, barrier or constant that no GPU has. Handlers do
    not check these numbers again.
    """
    instructions = tuple(function.instructions)
    if not instructions:
        raise CompileError(f"{function.name} has no instructions")
    require_named(function.name, instructions)
    addresses = handler_addresses(instructions)
    indices = {instruction.address: index for index, instruction in enumerate(instructions)}
    records = np.zeros((len(instructions) + 1, Insn.SIZE), np.uint8)
    after = -1
    for index, instruction in enumerate(instructions):
        _fill(records[index], index, instruction, addresses[table.form_key(instruction)], indices)
        if "COLLECTIVE" in instruction.modifiers:
            after = index
        elif instruction.opcode == "ENDCOLLECTIVE" and after >= 0:
            records[index, Insn.TARGET : Insn.TARGET + 8] = records[after, Insn.TARGET : Insn.TARGET + 8]
    for index in entries:
        if 0 <= index < len(instructions):
            _put(records[index], Insn.ENTRY, 1)
    _put(records[-1], Insn.HANDLER, service_addresses()["lost"])
    # An event has its instruction's index; the extra record reports that of the last instruction.
    _put(records[-1], Insn.INDEX, len(instructions) - 1)
    _put(records[-1], Insn.GUARD, Warp.predicate(7))
    return Code(function.name, instructions, records, 0)


def _put(record: Bytes, offset: int, value: int, type_: Any = np.int64) -> None:
    record[offset : offset + np.dtype(type_).itemsize].view(type_)[0] = value


def _fill(record: Bytes, index: int, instruction: Instruction, handler: int, indices: dict[int, int]) -> None:
    _put(record, Insn.HANDLER, handler)
    _put(record, Insn.INDEX, index)
    _put(record, Insn.STRONG, int("STRONG" in instruction.modifiers), np.int32)
    guard = instruction.predicate
    _put(record, Insn.GUARD, Warp.predicate(guard.index, uniform=guard.kind == "upred") if guard else Warp.predicate(7))
    _put(record, Insn.GUARD_XOR, -1 if guard and guard.invert else 0, np.int32)
    if len(instruction.operands) > Insn.OPERAND_COUNT:
        raise CompileError(f"{instruction.text!r} has more than {Insn.OPERAND_COUNT} operands")
    for number, operand in enumerate(instruction.operands):
        where = Insn.OPERANDS + number * Insn.OPERAND_SIZE
        for part, value in enumerate(fields(operand)):
            _put(record, where + 8 * part, value)
        if operand.kind == "label":
            _put(record, Insn.TARGET, indices.get(operand.value, len(indices)))


def fields(operand: Operand) -> tuple[int, ...]:
    """Return the one to four fields of an operand's record: byte offsets in the warp's structure, or values."""
    match operand.kind:
        case "reg":
            return Warp.register(operand.index), Warp.register(operand.index, write=True)
        case "ureg":
            return Warp.uniform(operand.index), Warp.uniform(operand.index, write=True)
        case "pred" | "upred":
            uniform = operand.kind == "upred"
            read = Warp.predicate(operand.index, uniform=uniform)
            return read, Warp.predicate(operand.index, write=True, uniform=uniform)
        case "barrier":
            row = Warp.CONVERGENCE + operand.index * ROW
            return row, row
        case "const":
            return operand.value, Warp.register(operand.base), Warp.uniform(operand.ubase)
        case "mem":
            return Warp.register(operand.base), Warp.uniform(operand.ubase), operand.value, Warp.uniform(operand.desc)
        case _:
            return (operand.value,)
