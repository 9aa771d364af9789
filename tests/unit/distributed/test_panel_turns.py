"""The turns of a product: they multiply everything once, with panels of limited size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from gemmlab.distributed import panels
from gemmlab.distributed.panel_turns import own_turn, turns_of, turns_of_ranks
from gemmlab.distributed.panels import common
from gemmlab.distributed.placements import share

SENT = [(False, False), (True, False), (False, True), (True, True)]


@given(
    st.tuples(*[st.integers(0, 30)] * 3), st.sampled_from(SENT), st.booleans(), st.tuples(*[st.integers(1, 16)] * 3),
    st.integers(1, 4), st.integers(0, 3), st.booleans(), st.booleans(),
)  # fmt: skip
def test_turns_multiply_all_terms_once(
    extents: tuple[int, int, int], sent: tuple[bool, bool], fixed: bool, sizes: tuple[int, int, int], ranks: int,
    rank: int, by_terms: bool, apart: bool,
) -> None:  # fmt: skip
    m, n, k = extents
    with pytest.MonkeyPatch.context() as patch:
        for name, size in zip(("PANEL", "WORDS", "DEPTH"), sizes, strict=True):
            patch.setattr(panels, name, size)
        shares = [share(k, ranks, each) for each in range(ranks)]
        own, how = shares[rank % ranks], {"sends_a": sent[0], "sends_b": sent[1], "fixed": fixed, "by_terms": by_terms}
        first = own_turn(m, n, k, own=own, **how)
        others = turns_of_ranks(m, n, k, shares=shares, apart=apart, **how)
        turns = [*([first] if first else []), *others[rank % ranks]]
    assert len({len(each) for each in others}) == 1
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
            assert not (by_terms and apart and common(turn.terms, own))
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


@given(st.integers(1, 30), st.integers(1, 12), st.integers(2, 5), st.booleans())
def test_panels_apart_come_from_one_rank_after_another(k: int, lines: int, ranks: int, sends_a: bool) -> None:
    shares = [share(k, ranks, rank) for rank in range(ranks)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panels, "WORDS", 3 * lines)
        everyone = turns_of_ranks(
            lines, lines, k, sends_a=sends_a, sends_b=not sends_a, fixed=False, shares=shares, by_terms=True, apart=True
        )
    for rank, turns in enumerate(everyone):
        found = [term for turn in turns for term in turn.terms]
        assert found == [*range(shares[rank].stop, k), *range(shares[rank].start)]
        assert all(any(set(turn.terms) <= set(each) for each in shares) for turn in turns)
