"""The parts of a matrix on a mesh, and what ranks receive when its layout changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from gemmlab.distributed.mesh_algorithms import algorithms
from gemmlab.distributed.mesh_parts import areas, parts_of, received_bytes, stages

WORDS = ("rows", "columns", "replica", "sum")
MESH = st.lists(st.integers(1, 5), min_size=1, max_size=2)
SHAPE = st.tuples(*[st.integers(0, 40)] * 2)


@given(SHAPE, MESH, st.lists(st.sampled_from(WORDS), min_size=2, max_size=2))
def test_the_parts_of_a_layout_cover_a_matrix(shape: tuple[int, int], mesh: list[int], words: list[str]) -> None:
    layout = words[: len(mesh)]
    parts = parts_of(shape, layout, mesh)
    covered = np.zeros(shape, int)
    for rank in np.ndindex(*mesh):
        (top, bottom), (left, right) = parts[(..., *rank)]
        covered[top:bottom, left:right] += 1
    copies = np.prod([ranks for word, ranks in zip(layout, mesh, strict=True) if word in ("replica", "sum")])
    assert (covered == copies).all()
    assert areas(parts).sum() == covered.sum()


@pytest.mark.parametrize(
    ("mesh", "before", "into", "parts_of_16"),
    [
        ((4,), ("columns",), ("rows",), 3),
        ((4,), ("replica",), ("rows",), 0),
        ((4,), ("rows",), ("replica",), 12),
        ((4,), ("sum",), ("rows",), 12),
        ((4,), ("sum",), ("replica",), 24),
        ((4, 4), ("sum", "sum"), ("rows", "columns"), 15),
        ((2, 2), ("rows", "replica"), ("rows", "columns"), 0),
        ((2, 2), ("rows", "columns"), ("columns", "rows"), 4),
        ((2, 2), ("rows", "other"), ("rows", "columns"), 4),
        ((4, 1), ("rows", "columns"), ("rows", "rows"), 0),
    ],
)
def test_bytes_of_a_change(
    mesh: tuple[int, ...], before: tuple[str, ...], into: tuple[str, ...], parts_of_16: int
) -> None:
    assert received_bytes((16, 16), before, into, mesh) == parts_of_16 * 4 * 16 * 16 / 16


@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS[:3])), min_size=1, max_size=2))
def test_no_sum_is_added_twice(changes: list[tuple[str, str]]) -> None:
    before, into = zip(*changes, strict=True)
    old = before
    for new in stages(before, into):
        assert all(one == "sum" or other != "sum" for one, other in zip(old, new, strict=True))
        # Each rank of a sum adds its own part; all others take the result from there.
        assert all((one, other) != ("sum", "replica") for one, other in zip(old, new, strict=True))
        old = new
    assert old == into


@given(*[st.tuples(*[st.sampled_from(WORDS)] * 2)] * 2, st.integers(1, 2))
def test_algorithms_multiply_matching_terms(a: tuple[str, ...], b: tuple[str, ...], dimensions: int) -> None:
    for one in algorithms(a[:dimensions], b[:dimensions]):
        for words in zip(one.a, one.b, one.c, one.sums or one.c, strict=True):
            of_a, of_b, of_c, before = words
            # Ranks that differ in this dimension make other rows or columns, or add their parts of k.
            assert (before == "sum") == ((of_a, of_b) == ("columns", "rows"))
            assert of_c != "sum"
            if before != "sum" and one.name != "local":
                assert before == ("rows" if of_a == "rows" else "columns")
        if one.sums:
            # No operand is sent in panels: the terms of k match where both operands are cut.
            kinds = [words for words in zip(one.a, one.b, one.sums, strict=True) if words[2] != "sum"]
            assert all("replica" in words[:2] for words in kinds)
