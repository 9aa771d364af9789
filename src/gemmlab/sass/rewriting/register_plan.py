"""Registers of a rewritten loop: two sets of fragments, and each sum in another bank than its column's value of B.

With `Variant.by_columns`, each sum is instead in another bank than its row's value of A.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.core.errors import UsageError
from gemmlab.sass.rewriting.compiled_loop import COLUMNS, ROWS, CompiledLoop
from gemmlab.sass.rewriting.register_cells import registers
from gemmlab.sass.rewriting.temporaries import Named, named, twins_of
from gemmlab.sass.rewriting.variant import Variant

LIMIT = 252
"""Number of registers that the code may use; the cubin states two more, which the hardware reserves."""
_CIRCLE = 16
"""The most sums that exchange registers in one circle.

After the loop, n + 1 copies move n sums of a circle back.
"""


@dataclass(frozen=True, slots=True)
class Registers:
    """Numbers of the registers in a rewritten loop."""

    a: tuple[dict[int, int], dict[int, int]]
    b: tuple[dict[int, int], dict[int, int]]
    """`a`: two maps from a row to the register of its value of A, first for even, then for odd steps of k. `b`: the
    same from a column, for B.
    """
    sums: dict[tuple[int, int], int]
    """(row, column) -> register of the sum."""
    zeroed: tuple[int, ...]
    """Registers of sums that the rewritten code sets to zero before the loop, because the compiler's code does not."""
    base_a: int
    base_b: int
    """`base_a`, `base_b`: registers with the addresses of A's and of B's fragments in shared memory, in the stage that
    the loop reads.
    """
    others: tuple[Named, ...]
    """Instructions of `CompiledLoop.others` that stay, in the compiler's order."""
    following_a: Named
    following_b: Named
    """`following_a` and `following_b` are `StageAddress.following` of A and B, with new registers."""


def planned(loop: CompiledLoop, variant: Variant, limit: int = LIMIT) -> Registers:
    """Return the registers of a rewritten loop; those that the compiled loop does not have are below `limit`.

    Raises `UsageError` if these are too few.
    """
    first = {*loop.a.values(), *loop.b.values()}
    taken = loop.carried | first | {*loop.sums.values(), 1} | loop.through
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
    others = [one for one in loop.others if not (variant.no_idle and one.is_idle)]
    twins = twins_of(others, loop.carried) if variant.no_copies else {}
    others = [one for one in others if not (one.opcode == "MOV" and one.operands[0].index in twins)]
    following = (loop.of_a.following, loop.of_b.following)
    read = {register for one in (*others, *following) for register in registers(one, writes=False)}
    at_entry = {register for one in (*loop.of_a.entry, *loop.of_b.entry) for register in registers(one, writes=False)}
    free += sorted(loop.carried - read - loop.behind - set(free))
    # A register from which the first address is computed cannot be the address register; it is left for temporaries.
    free.sort(key=lambda register: register not in at_entry)
    known = named(others, following, loop.carried, free, twins, spare=len(following))
    bases = [register for register in free if register not in at_entry]
    if len(bases) < len(following):
        raise UsageError(f"{loop.function.name}: no register below R{limit} is left for the addresses of a stage")
    return Registers(
        (loop.a, dict(enumerate(second[:ROWS]))), (loop.b, dict(enumerate(second[ROWS:]))), sums, zeroed,
        bases[0], bases[1], tuple(known[:-2]), known[-2], known[-1],
    )  # fmt: skip


def _sums(
    loop: CompiledLoop, free: list[int], *, wrong: bool, by_rows: bool
) -> tuple[dict[tuple[int, int], int], tuple[int, ...]]:
    """Return the register of each sum, and those registers among them that contain no sum in the compiler's loop.

    A sum lies in another bank than its value of B, or of A with `by_rows`; with `wrong`, in the same bank. Sums
    exchange registers for this. A sum without a partner gets a register of `free`, which is removed there.
    """

    def right(place: tuple[int, int]) -> int:
        return (1 + wrong - place[0 if by_rows else 1]) % 2

    sums = {place: register for place, register in sorted(loop.sums.items()) if register % 2 == right(place)}
    misplaced = [[place for place in sorted(loop.sums) if place not in sums and loop.sums[place] % 2 == bank]
                 for bank in range(2)]  # fmt: skip
    pairs = min(map(len, misplaced))
    for start in range(0, pairs, _CIRCLE // 2):
        circle = [place for pair in zip(*(some[start : min(start + _CIRCLE // 2, pairs)] for some in misplaced),
                                        strict=True) for place in pair]  # fmt: skip
        for place, following in zip(circle, [*circle[1:], circle[0]], strict=True):
            sums[place] = loop.sums[following]
    zeroed: list[int] = []
    for place in (*misplaced[0][pairs:], *misplaced[1][pairs:]):
        spare = [register for register in free if register % 2 == right(place)]
        if not spare:
            raise UsageError(f"{loop.function.name}: no register of bank {right(place)} is left for the sum {place}")
        sums[place] = min(spare, key=lambda register: (register ^ 1 in free, register))
        free.remove(sums[place])
        zeroed.append(sums[place])
    return sums, tuple(zeroed)
