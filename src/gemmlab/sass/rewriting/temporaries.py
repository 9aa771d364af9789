"""Temporaries of a loop under new names: each value has a register of its own, as long as it is used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gemmlab.core.errors import UsageError
from gemmlab.sass.instruction import Instruction
from gemmlab.sass.register_accesses import accesses_of
from gemmlab.sass.rewriting.register_cells import registers

_VALUE = 1 << 10
"""Value number v of register r is v * _VALUE + r until it has a register."""


@dataclass(frozen=True, slots=True)
class Named:
    """An instruction, and the new names of the registers that it reads and writes."""

    instruction: Instruction
    reads: dict[int, int]
    writes: dict[int, int]


def named(
    instructions: Sequence[Instruction],
    last: Sequence[Instruction],
    permanent: frozenset[int],
    free: list[int],
    twins: dict[int, int],
) -> list[Named]:
    """Name temporaries anew, pairs first; what is named leaves `free`. `permanent` are registers that keep their names.

    `last` are further instructions, whose results get no names. `twins` are names that are given already. Raises
    `UsageError` if no register is left.
    """
    temporaries = {cell for one in instructions for cell in registers(one, writes=True)} - permanent
    pairs = {first for one in instructions for first in _pairs(one) if first in temporaries}
    found = [*_values(instructions, last, temporaries | twins.keys(), pairs)]
    values = {value for one in found for some in (one.reads, one.writes) for value in some.values()}
    names = {value: twins[value] for value in values & twins.keys()}
    for low in sorted(value for value in values if value % _VALUE in pairs and value not in names):
        start = next((one for one in free if one % 2 == 0 and one + 1 in free), None)
        if start is None:
            raise UsageError(f"no pair of registers is left for R{low % _VALUE} and the next one of the compiler")
        for lane in range(2):
            free.remove(start + lane)
            names[low + lane] = start + lane
    for value in sorted(values - names.keys()):
        single = [one for one in free if one ^ 1 not in free] or free
        if not single:
            raise UsageError(f"no register is left for R{value % _VALUE} of the compiler")
        names[value] = single[0]
        free.remove(single[0])
    return [
        Named(one.instruction, *({register: names[value] for register, value in some.items()}
                                 for some in (one.reads, one.writes)))
        for one in found
    ]  # fmt: skip


def _values(
    instructions: Sequence[Instruction], last: Sequence[Instruction], temporaries: set[int], pairs: set[int]
) -> Iterable[Named]:
    """Number the values of each temporary: a new one begins where all of it, or its pair, is written and not read."""
    number: dict[int, int] = {}
    for one in (*instructions, *last):
        read, written = (registers(one, writes=kind) & temporaries for kind in (False, True))
        if one in last:
            written = frozenset()
        reads = {register: number.get(register, 0) * _VALUE + register for register in read}
        for register in written:
            unit = {register & ~1, register | 1} if register & ~1 in pairs else {register}
            if unit <= written and not unit & read and one.predicate is None and register == min(unit):
                for lane in unit:
                    number[lane] = number.get(lane, 0) + 1
        writes = {register: number.get(register, 0) * _VALUE + register for register in written}
        yield Named(one, reads, writes)


def twins_of(instructions: Sequence[Instruction], permanent: frozenset[int]) -> dict[int, int]:
    """Copies of registers that nothing writes -> their sources, if pairs stay pairs."""
    found = {
        one.operands[0].index: one.operands[1].index
        for one in instructions
        if one.opcode == "MOV" and one.predicate is None and one.operands[1].kind == "reg"
        and one.operands[1].index in permanent and one.operands[0].index not in permanent
    }  # fmt: skip
    paired = all(found.get(copy ^ 1) == source ^ 1 and copy % 2 == source % 2 for copy, source in found.items())
    return found if paired else {}


def _pairs(instruction: Instruction) -> Iterable[int]:
    """The first registers of operands of two."""
    accesses = accesses_of(instruction)
    return (access.first for access in (*accesses.reads, *accesses.writes) if access.count == 2 and access.first < 255)
