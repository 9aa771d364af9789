"""The turns of a product: they multiply everything once, with panels of limited size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from gemmlab.distributed import panels
from gemmlab.distributed.panel_turns import turns_of
from gemmlab.distributed.placements import share

SENT = [(False, False), (True, False), (False, True), (True, True)]


@given(
    st.tuples(*[st.integers(0, 30)] * 3), st.sampled_from(SENT), st.booleans(), st.tuples(*[st.integers(1, 16)] * 3),
    st.integers(1, 4), st.integers(0, 3), st.booleans(),
)  # fmt: skip
def test_turns_multiply_all_terms_once(
    extents: tuple[int, int, int], sent: tuple[bool, bool], fixed: bool, sizes: tuple[int, int, int], ranks: int,
    rank: int, by_terms: bool,
) -> None:  # fmt: skip
    m, n, k = extents
    with pytest.MonkeyPatch.context() as patch:
        for name, size in zip(("PANEL", "WORDS", "DEPTH"), sizes, strict=True):
            patch.setattr(panels, name, size)
        own = share(k, ranks, rank % ranks)
        turns = turns_of(m, n, k, sends_a=sent[0], sends_b=sent[1], fixed=fixed, own=own, by_terms=by_terms)
    done = np.zeros((m, n, k), int)
    for number, turn in enumerate(turns):
        for terms in turn.parts:
            assert set(terms) <= set(turn.terms)
            part = slice(turn.rows.start, turn.rows.stop), slice(turn.columns.start, turn.columns.stop)
            done[(*part, slice(terms.start, terms.stop))] += 1
        if fixed or sent == (True, True):
            assert len(turn.terms) <= sizes[0]
        elif sent != (False, False) and not turn.own:
            lines = turn.rows if sent[0] else turn.columns
            # One line of all terms, or one term of all lines, may be more than the bound.
            assert len(lines) * len(turn.terms) <= max(sizes[1], len(lines), len(turn.terms))
            assert by_terms or len(turn.terms) <= sizes[2]
            assert not by_terms or len(lines) == (m if sent[0] else n)
        if turn.own:
            assert number == 0
            assert turn.parts == (own,)
    assert (done == 1).all()


@given(st.integers(0, 100_000), st.sampled_from(SENT), st.integers(0, 9), st.integers(0, 9))
def test_the_order_of_sums_does_not_depend_on_what_is_sent(
    k: int, sent: tuple[bool, bool], m: int, n: int
) -> None:  # fmt: skip
    found = turns_of(m, n, k, sends_a=sent[0], sends_b=sent[1], fixed=True, own=share(k, 3, 1))
    assert [turn.terms for turn in found] == [
        range(first, min(first + panels.PANEL, k)) for first in range(0, k, panels.PANEL)
    ]


@given(st.tuples(*[st.integers(1, 30)] * 2), st.integers(1, 40), st.booleans(), st.integers(1, 4), st.booleans())
def test_all_ranks_have_the_same_panels(
    extents: tuple[int, int], k: int, sends_a: bool, ranks: int, by_terms: bool
) -> None:
    def sent(rank: int) -> list[tuple[range, range]]:
        own = share(k, ranks, rank)
        turns = turns_of(*extents, k, sends_a=sends_a, sends_b=not sends_a, fixed=False, own=own, by_terms=by_terms)
        return [(turn.terms, turn.rows if sends_a else turn.columns) for turn in turns if not turn.own]

    assert all(sent(rank) == sent(0) for rank in range(ranks))
