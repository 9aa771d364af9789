"""Alignment of two listings by the effect of their instructions.

Two instructions match if they have the same opcode, modifiers, kinds of operands, constants and number of loops around
them, and if both or neither are predicated; registers may differ. The longest common subsequence of two listings is
found with bit vectors (Hyyrö, "Bit-parallel LCS-length computation revisited", 2004). The bit vector of each row is
stored, so that the subsequence can be traced back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from gemmlab.analysis.listing.code import Row
from gemmlab.sass.instruction import Operand

SAME, CHANGED, LEFT, RIGHT = "same", "changed", "left", "right"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two aligned instructions, by their indices in the listings; `None` if an instruction has no partner."""

    left: int | None
    right: int | None
    kind: str
    """`SAME` if the instructions match, whatever their registers; `CHANGED` if they have the same opcode but do not
    match, such as by their modifiers or constants; `LEFT` or `RIGHT` for an instruction of that listing without a
    partner.
    """


def align(left: Sequence[Row], right: Sequence[Row]) -> tuple[Pair, ...]:
    """Return all instructions of both listings in order, in pairs or alone.

    Between the matches, instructions with the same opcode are paired as `CHANGED`.
    """
    matches = [(i, j, SAME) for i, j in _matches(left, right, _does)]
    found: list[tuple[int, int, str]] = []
    for (i, j, _), (before_i, before_j, _) in zip([*matches, (len(left), len(right), "")],
                                                  [(-1, -1, ""), *matches], strict=True):  # fmt: skip
        inside = _matches(left[before_i + 1 : i], right[before_j + 1 : j], _opcode)
        found += [(before_i + 1 + x, before_j + 1 + y, CHANGED) for x, y in inside]
        found.append((i, j, SAME))
    return tuple(_woven(found))


def _woven(matches: Sequence[tuple[int, int, str]]) -> list[Pair]:
    """Return the matches, in order, and the instructions between them.

    The last match stands for the ends of both listings and is not returned.
    """
    pairs: list[Pair] = []
    x = y = 0
    for i, j, kind in matches:
        pairs += [Pair(place, None, LEFT) for place in range(x, i)]
        pairs += [Pair(None, place, RIGHT) for place in range(y, j)]
        pairs.append(Pair(i, j, kind))
        x, y = i + 1, j + 1
    return pairs[:-1]


def _matches(left: Sequence[Row], right: Sequence[Row], key: Callable[[Row], Hashable]) -> list[tuple[int, int]]:
    """Return the pairs of indices of a longest common subsequence; rows with equal `key` match."""
    first, second = [key(row) for row in left], [key(row) for row in right]
    if not first or not second:
        return []
    places: dict[Hashable, int] = {}
    for at, name in enumerate(second):
        places[name] = places.get(name, 0) | 1 << at
    every = (1 << len(second)) - 1
    vector, vectors = every, [every]
    for name in first:
        same = vector & places.get(name, 0)
        vector = (vector + same | vector - same) & every
        vectors.append(vector)
    found = []
    i, j = len(first), len(second)
    while i and j:
        # Bit j - 1 is clear where the common subsequence grows with the j-th instruction.
        bit = 1 << j - 1
        if vectors[i] & bit:
            j -= 1
        elif not vectors[i - 1] & bit:
            i -= 1
        else:
            found.append((i - 1, j - 1))
            i, j = i - 1, j - 1
    return found[::-1]


def _does(row: Row) -> Hashable:
    i = row.instruction
    return row.depth, i.name, i.predicate is not None, tuple(_kind(operand) for operand in i.operands)


def _opcode(row: Row) -> Hashable:
    return row.instruction.opcode


def _kind(operand: Operand) -> Hashable:
    """Return the part of an operand that must be equal in instructions that match.

    It is the kind, and the bank and address of a constant, or the value of an immediate.
    """
    match operand.kind:
        case "const":
            return operand.kind, operand.bank, operand.value
        case "imm" | "special":
            return operand.kind, operand.value, operand.name
        case _:
            return operand.kind
