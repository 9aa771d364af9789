"""The alignment of two listings: every instruction once, in order, with as many partners as possible."""

from __future__ import annotations

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from gemmlab.analysis.listing.alignment import CHANGED, LEFT, RIGHT, SAME, align
from gemmlab.analysis.listing.code import Row
from support.sass_corpus import written

TEXTS = ("FFMA R1, R2, R3, R4", "FADD R1, R2, R3", "LDS R1, [R2]", "LDS.128 R4, [R2]", "BAR.SYNC 0x0", "MOV R1, R2")


def rows(*lines: str) -> list[Row]:
    return [Row(i, (), 0, 0, (), 0, 0, None) for i in written(*lines).instructions]


def test_registers_do_not_matter_but_the_rest_does() -> None:
    left = rows("FFMA R1, R2, R3, R4", "LDS R1, [R2]", "MOV R1, 0x1")
    right = rows("FFMA R9, R8.reuse, R7, R6", "LDS.64 R4, [R6]", "BAR.SYNC 0x0", "MOV R1, 0x2")
    found = [(pair.left, pair.right, pair.kind) for pair in align(left, right)]
    assert found == [(0, 0, SAME), (1, 1, CHANGED), (None, 2, RIGHT), (2, 3, CHANGED)]


def test_nothing_beside_something() -> None:
    assert [pair.kind for pair in align(rows(*TEXTS), [])] == [LEFT] * len(TEXTS)
    assert [pair.kind for pair in align([], rows(*TEXTS))] == [RIGHT] * len(TEXTS)
    assert align([], []) == ()


def longest(left: list[str], right: list[str]) -> int:
    """The length of a longest common subsequence, by its recursive definition."""

    @cache
    def of(i: int, j: int) -> int:
        if not i or not j:
            return 0
        return of(i - 1, j - 1) + 1 if left[i - 1] == right[j - 1] else max(of(i - 1, j), of(i, j - 1))

    return of(len(left), len(right))


@given(st.lists(st.sampled_from(TEXTS), max_size=40), st.lists(st.sampled_from(TEXTS), max_size=40))
def test_it_is_whole_in_order_and_as_long_as_can_be(left: list[str], right: list[str]) -> None:
    pairs = align(rows(*left), rows(*right))
    assert [pair.left for pair in pairs if pair.left is not None] == list(range(len(left)))
    assert [pair.right for pair in pairs if pair.right is not None] == list(range(len(right)))
    same = [(pair.left, pair.right) for pair in pairs if pair.kind == SAME]
    assert all(left[i] == right[j] for i, j in same if i is not None and j is not None)
    assert len(same) == longest(left, right)
