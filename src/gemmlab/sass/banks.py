"""Register bank conflicts: the cycles lost if too many sources of an instruction lie in one bank.

Maxwell and Pascal have four banks that deliver one register a cycle each (the SGEMM page of the maxas assembler). Volta
and later have two banks of two ports (Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via
Microbenchmarking"). The operand cache has one register for each operand position and bank; `.reuse` keeps it until that
position reads that bank again (Huerta et al., "Analyzing Modern NVIDIA GPU cores"). NVIDIA publishes none of this.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from gemmlab.core.errors import UsageError
from gemmlab.sass.instruction import RZ, Instruction, Operand
from gemmlab.sass.pipes import pipe

_FIRST_WITH_TWO_BANKS = 70
_WIDE = frozenset({"WIDE", "64", "X64"})
_SOURCE_KINDS = frozenset({"reg", "imm", "const", "ureg"})


@dataclass(frozen=True, slots=True)
class RegisterFile:
    """Layout of a register file: register r is in bank r modulo `banks`; a bank delivers `ports` registers a cycle."""

    banks: int
    ports: int


def register_file(arch: str) -> RegisterFile:
    """Return the register file of an architecture such as `"sm_90"`. Raises `UsageError` for any other text."""
    match = re.fullmatch(r"sm_(\d+)[af]?", arch)
    if match is None:
        raise UsageError(f"no architecture: {arch!r}")
    return RegisterFile(2, 2) if int(match[1]) >= _FIRST_WITH_TWO_BANKS else RegisterFile(4, 1)


def conflict_cycles(instructions: Iterable[Instruction], arch: str) -> list[int]:
    """Return the cycles beyond one that each instruction takes to read its sources. The instructions run in this order.

    Conflicts are counted only for 32-bit arithmetic (pipes fma, fmaheavy and alu). Other instructions get 0, and are
    assumed to leave the operand cache as it is.
    """
    file = register_file(arch)
    reuse: dict[tuple[int, int], int] = {}
    return [_cycles(instruction, file, reuse) if _counts(instruction) else 0 for instruction in instructions]


def bank_reads(instructions: Iterable[Instruction], arch: str) -> list[tuple[int, ...]]:
    """Return the number of registers that each instruction reads from each bank. The instructions run in this order.

    Registers in the operand cache are not read again. Instructions other than 32-bit arithmetic (see `conflict_cycles`)
    get zeros.
    """
    file = register_file(arch)
    reuse: dict[tuple[int, int], int] = {}
    found = []
    for instruction in instructions:
        read = _read(instruction, file, reuse) if _counts(instruction) else set()
        count = Counter(register % file.banks for register in read)
        found.append(tuple(count[bank] for bank in range(file.banks)))
    return found


def _cycles(instruction: Instruction, file: RegisterFile, reuse: dict[tuple[int, int], int]) -> int:
    read = _read(instruction, file, reuse)
    fullest = max(Counter(register % file.banks for register in read).values(), default=0)
    return max(0, -(-fullest // file.ports) - 1)


def _read(instruction: Instruction, file: RegisterFile, reuse: dict[tuple[int, int], int]) -> set[int]:
    """Return the registers that an instruction reads from banks, not from the operand cache, and update that cache.

    `reuse` is the cache: (operand position, bank) -> register.
    """
    read: set[int] = set()
    for position, operand in enumerate(_sources(instruction)):
        if operand.kind != "reg" or operand.index == RZ:
            continue
        place = position, operand.index % file.banks
        if reuse.get(place) != operand.index:
            read.add(operand.index)
        if operand.reuse:
            reuse[place] = operand.index
        else:
            reuse.pop(place, None)
    return read


def _counts(instruction: Instruction) -> bool:
    return pipe(instruction) in ("fma", "fmaheavy", "alu") and not _WIDE & set(instruction.modifiers)


def _sources(instruction: Instruction) -> list[Operand]:
    # Predicates do not count as operand positions. The destination, if it is a register, is the first operand.
    operands = [operand for operand in instruction.operands if operand.kind in _SOURCE_KINDS]
    first = instruction.operands[0] if instruction.operands else None
    return operands[1 if first is not None and first.kind in ("reg", "ureg") else 0 :]
