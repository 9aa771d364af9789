"""Registers of a written loop: every sum in the other bank than its column's fragment, two sets of fragments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemmlab.core.errors import UsageError
from gemmlab.sass.cells import UNIFORM
from gemmlab.sass.instruction import Instruction
from gemmlab.sass.register_accesses import accesses_of
from peak_loop.compiled import COLUMNS, ROWS, CompiledLoop, touched
from peak_loop.variants import Variant

LIMIT = 248
"""Registers that the code may use; the cubin states two more, which the hardware keeps."""


@dataclass(frozen=True, slots=True)
class Registers:
    a: tuple[dict[int, int], dict[int, int]]
    b: tuple[dict[int, int], dict[int, int]]
    """Fragments of even and of odd steps, by row and by column."""
    sums: dict[tuple[int, int], int]
    zeroed: tuple[int, ...]
    """Registers of sums that the compiler's code before the loop does not set to zero."""
    base_a: int
    base_b: int
    """Addresses of the stage that is read."""
    address_a: Instruction
    address_b: Instruction
    """The compiler's last computation of each."""
    names: dict[int, int]
    """The compiler's temporaries -> those of the written loop."""
    others: tuple[Instruction, ...]
    """The compiler's other instructions that stay, in its order."""


def planned(loop: CompiledLoop, variant: Variant, limit: int = LIMIT) -> Registers:
    """Plan the registers. Raises `UsageError` if the loop needs more than `limit`."""
    homes = set(loop.sums.values())
    first = set(loop.a.values()) | set(loop.b.values())
    kept = loop.carried - homes - first
    taken = kept | first | homes | {1} | loop.through
    free = [register for register in range(limit) if register not in taken]
    quads = [start for start in range(0, limit, 4) if all(start + lane in free for lane in range(4))]
    quads = quads[-(ROWS + COLUMNS) // 4 :]
    if len(quads) < (ROWS + COLUMNS) // 4:
        raise UsageError(
            f"{loop.function.name}: {len(quads)} free quads below R{limit} for the second fragments, not 6"
        )
    free = [register for register in free if register // 4 * 4 not in quads]
    second = [start + lane for start in quads for lane in range(4)]
    sums, zeroed = _sums(loop, free, wrong=variant.wrong_bank, by_rows=variant.by_columns)
    addresses = {load.operands[1].base for load in loop.loads}
    computed = [one for one in loop.others if one.opcode == "LEA" and one.operands[0].index in addresses]
    wanted = {load.operands[1].base for load in loop.loads[-(ROWS + COLUMNS) // 4 :]}
    last = {one.operands[0].index: one for one in computed if one.operands[0].index in wanted}
    others = [one for one in loop.others if one not in computed]
    if variant.no_idle:
        others = [one for one in others if not one.is_idle]
    names = _twins(others, kept) if variant.no_copies else {}
    others = [one for one in others if not (one.opcode == "MOV" and one.operands[0].index in names)]
    needed = {cell for one in (*others, *last.values()) for cell in touched(one, writes=False)}
    ended = {cell for one in computed for cell in touched(one, writes=False)} - needed - loop.behind
    free += sorted(register for register in ended if register in kept and register not in free)
    _temporaries(others, kept, free, names)
    if len(free) < len(wanted):
        raise UsageError(f"{loop.function.name}: no register below R{limit} is left for the addresses of a stage")
    (a_home,) = loop.of_a
    (b_home,) = wanted - loop.of_a
    return Registers(
        (loop.a, dict(enumerate(second[:ROWS]))), (loop.b, dict(enumerate(second[ROWS:]))), sums, zeroed,
        free[0], free[1], last[a_home], last[b_home], names, tuple(others),
    )  # fmt: skip


def _sums(
    loop: CompiledLoop, free: list[int], *, wrong: bool, by_rows: bool
) -> tuple[dict[tuple[int, int], int], tuple[int, ...]]:
    def right(place: tuple[int, int]) -> int:
        return (1 + wrong - place[0 if by_rows else 1]) % 2

    sums = {place: register for place, register in sorted(loop.sums.items()) if register % 2 == right(place)}
    left = sorted(set(loop.sums.values()) - set(sums.values()))
    zeroed: list[int] = []
    for place in sorted(loop.sums):
        if place not in sums:
            bank = right(place)
            same = [register for register in left if register % 2 == bank]
            if same:
                sums[place] = same[-1]
                left.remove(same[-1])
                continue
            spare = [register for register in free if register % 2 == bank]
            if not spare:
                raise UsageError(f"{loop.function.name}: no register of bank {bank} is left for the sum {place}")
            sums[place] = min(spare, key=lambda register: (register ^ 1 in free, register))
            free.remove(sums[place])
            zeroed.append(sums[place])
    return sums, tuple(zeroed)


def _twins(others: Sequence[Instruction], kept: set[int] | frozenset[int]) -> dict[int, int]:
    """Copies of registers that nothing writes -> their sources, if pairs stay pairs."""
    found = {
        one.operands[0].index: one.operands[1].index
        for one in others
        if one.opcode == "MOV" and one.predicate is None and one.operands[1].kind == "reg"
        and one.operands[1].index in kept
    }  # fmt: skip
    paired = all(found.get(copy ^ 1) == source ^ 1 and copy % 2 == source % 2 for copy, source in found.items())
    return found if paired else {}


def _temporaries(
    others: Sequence[Instruction], kept: set[int] | frozenset[int], free: list[int], names: dict[int, int]
) -> None:
    """Name the temporaries anew, pairs first; what is named leaves `free`."""
    temporaries = {cell for one in others for cell in touched(one, writes=True)} - kept
    pairs = {
        access.cells[0]
        for one in others
        for access in (*accesses_of(one).reads, *accesses_of(one).writes)
        if len(access.cells) == 2 and access.cells[0] < UNIFORM and access.cells[0] in temporaries - set(names)
    }
    for low in sorted(pairs):
        start = next((register for register in free if register % 2 == 0 and register + 1 in free), None)
        if start is None:
            raise UsageError(f"no pair of registers is left for R{low} and R{low + 1} of the compiler")
        for lane in range(2):
            free.remove(start + lane)
            names[low + lane] = start + lane
    for one in sorted(temporaries - set(names)):
        single = [register for register in free if register ^ 1 not in free] or free
        if not single:
            raise UsageError(f"no register is left for R{one} of the compiler")
        names[one] = single[0]
        free.remove(single[0])
