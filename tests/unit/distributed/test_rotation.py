"""The turns of an operand in rotation: each rank meets all of k once, and sends what another rank waits for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from gemmlab.distributed import panels
from gemmlab.distributed.placements import share
from gemmlab.distributed.rotation import turns_of

_CASES = st.integers(0, 20 * panels.PANEL), st.integers(1, 9)


@given(*_CASES)
def test_each_rank_meets_all_of_k_once_and_begins_with_its_own(depth: int, ranks: int) -> None:
    for own in range(ranks):
        turns = turns_of(depth, ranks, own)
        assert turns[0].terms == share(depth, ranks, own)
        assert sorted(at for turn in turns for at in turn.terms[:: panels.PANEL]) == sorted(
            at for index in range(ranks) for at in share(depth, ranks, index)[:: panels.PANEL]
        )
        assert sum(len(turn.terms) for turn in turns) == depth
        assert all(len(turn.terms) <= panels.PANEL for turn in turns[1:])


@given(*_CASES)
def test_what_one_rank_sends_another_one_receives_in_the_same_turn(depth: int, ranks: int) -> None:
    every = [turns_of(depth, ranks, own) for own in range(ranks)]
    for own, turns in enumerate(every):
        for number, turn in enumerate(turns[1:], 1):
            assert every[turn.receiver][number].owner == own
            assert every[turn.receiver][number].terms == turn.sent
