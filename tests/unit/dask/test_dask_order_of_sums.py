"""Each block along k is added once, in an order that the numbers of blocks decide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("dask.array")

from gemmlab.dask.order_of_sums import ENOUGH, FAN, chains, groups


@given(st.integers(1, 2000), st.integers(1, 500))
def test_chains_cover_k_once_and_suffice(blocks_of_c: int, blocks_of_k: int) -> None:
    found = chains(blocks_of_c, blocks_of_k)
    assert [k for chain in found for k in range(chain.first, chain.end)] == list(range(blocks_of_k))
    assert all(chain.first < chain.end for chain in found)
    assert len(found) * blocks_of_c >= min(ENOUGH, blocks_of_c * blocks_of_k)
    assert len(found) == 1 or blocks_of_c < ENOUGH


@given(st.integers(1, 500))
def test_groups_add_each_sum_once(count: int) -> None:
    sums = [{index} for index in range(count)]
    levels = groups(count)
    for level in levels:
        assert len({place for group in level for place in group}) == sum(map(len, level))
        for into, *others in level:
            assert 1 <= len(others) < FAN
            for other in others:
                assert not sums[into] & sums[other]
                sums[into] |= sums[other]
    assert sums[0] == set(range(count))
    assert count == 1 or len(levels[-1]) == 1
    assert FAN ** (len(levels) - 1) < count <= FAN ** len(levels)
