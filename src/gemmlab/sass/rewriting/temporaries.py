"""Renaming of a loop's temporaries: each value gets a register of its own, or one of an earlier value that ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gemmlab.core.errors import UsageError
from gemmlab.sass.checking.steps import queue_of
from gemmlab.sass.instruction import Instruction
from gemmlab.sass.register_accesses import accesses_of
from gemmlab.sass.rewriting.register_cells import registers

_VALUE = 1 << 10
"""The v-th value of the compiler's register r, counted from 0, has the number v * _VALUE + r.

A value is the content of a register from one write to the next.
"""


@dataclass(frozen=True, slots=True)
class Named:
    """An instruction, with (old -> new) numbers of the registers that it reads and of those that it writes."""

    instruction: Instruction
    reads: dict[int, int]
    writes: dict[int, int]


def named(
    instructions: Sequence[Instruction],
    last: Sequence[Instruction],
    permanent: frozenset[int],
    free: list[int],
    twins: dict[int, int],
    spare: int = 0,
) -> list[Named]:
    """Return the instructions and `last`, with a register from `free` for each value of a temporary.

    Temporaries are the registers that `instructions` write and that are not in `permanent`. Pairs get registers first.
    If fewer than `spare` registers would be left, values share registers where one begins after the other's last read.
    The registers that are used are removed from `free`. The results of `last` are not renamed. `twins` has registers
    that are read instead of others (`twins_of`), old -> new. Raises `UsageError` if no register is left.
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
    rest = sorted(values - names.keys())
    shares = [[value] for value in rest] if len(rest) + spare <= len(free) else _shares(found, rest)
    for share in shares:
        single = [one for one in free if one ^ 1 not in free] or free
        if not single:
            raise UsageError(f"no register is left for R{share[0] % _VALUE} of the compiler")
        names |= dict.fromkeys(share, single[0])
        free.remove(single[0])
    return [
        Named(one.instruction, *({register: names[value] for register, value in some.items()}
                                 for some in (one.reads, one.writes)))
        for one in found
    ]  # fmt: skip


def _values(
    instructions: Sequence[Instruction], last: Sequence[Instruction], temporaries: set[int], pairs: set[int]
) -> Iterable[Named]:
    """Yield the instructions and `last`; each maps the temporaries that it reads and writes to numbers of values
    (`_VALUE`).

    An instruction without a predicate that writes a register, and does not read it, begins a new value. `pairs` has the
    first registers of pairs, whose two registers begin new values together. Writes by `last` are left out.
    """
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


def _shares(found: Sequence[Named], values: Iterable[int]) -> list[list[int]]:
    """Return the values divided into lists that can share a register each: a value begins after the last read of the
    one before. A value that an instruction without a fixed latency reads or writes, or that is read before any
    instruction writes it, has a list of its own.
    """
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    alone = set[int]()
    for place, one in enumerate(found):
        for value in one.reads.values():
            ends[value] = place
            if queue_of(one.instruction) is not None or value not in begins:
                alone.add(value)
        for value in one.writes.values():
            begins.setdefault(value, place)
            ends[value] = max(place, ends.get(value, place))
            if queue_of(one.instruction) is not None:
                alone.add(value)
    shares: list[list[int]] = []
    for value in sorted(values, key=lambda value: begins.get(value, -1)):
        fits = [share for share in shares if value not in alone and share[-1] not in alone
                and ends[share[-1]] < begins[value]]  # fmt: skip
        if fits:
            max(fits, key=lambda share: ends[share[-1]]).append(value)
        else:
            shares.append([value])
    return shares


def twins_of(instructions: Sequence[Instruction], permanent: frozenset[int]) -> dict[int, int]:
    """Return (copy -> source) of MOVs from permanent registers to temporaries.

    The result is empty unless all of them together copy whole pairs of registers to whole pairs, nothing else writes
    the copies, and nothing writes the sources: then each copy is its source at every read.
    """
    found = {
        one.operands[0].index: one.operands[1].index
        for one in instructions
        if one.opcode == "MOV" and one.predicate is None and one.operands[1].kind == "reg"
        and one.operands[1].index in permanent and one.operands[0].index not in permanent
    }  # fmt: skip
    writes = [register for one in instructions for register in registers(one, writes=True)]
    paired = all(found.get(copy ^ 1) == source ^ 1 and copy % 2 == source % 2 for copy, source in found.items())
    constant = all(writes.count(copy) == 1 and source not in writes for copy, source in found.items())
    return found if paired and constant else {}


def _pairs(instruction: Instruction) -> Iterable[int]:
    """Return the first cell of each operand that occupies two registers."""
    accesses = accesses_of(instruction)
    return (access.first for access in (*accesses.reads, *accesses.writes) if access.count == 2 and access.first < 255)
