"""Each block along k is added once, in an order that the numbers of blocks decide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("dask.array")

from gemmlab.dask.order_of_sums import ENOUGH, chains, pairs


@given(st.integers(1, 2000), st.integers(1, 500))
def test_chains_cover_k_once_and_suffice(blocks_of_c: int, blocks_of_k: int) -> None:
    found = chains(blocks_of_c, blocks_of_k)
    assert [k for chain in found for k in range(chain.first, chain.end)] == list(range(blocks_of_k))
    assert all(chain.first < chain.end for chain in found)
    assert len(found) * blocks_of_c >= min(ENOUGH, blocks_of_c * blocks_of_k)
    assert len(found) == 1 or blocks_of_c < ENOUGH


@given(st.integers(1, 500))
def test_pairs_add_each_sum_once(count: int) -> None:
    sums = [{index} for index in range(count)]
    for level in pairs(count):
        assert len({place for pair in level for place in pair}) == 2 * len(level)
        for into, other in level:
            assert not sums[into] & sums[other]
            sums[into] |= sums[other]
    assert sums[0] == set(range(count))
    assert count == 1 or len(pairs(count)[-1]) == 1
    assert len(pairs(count)) == (count - 1).bit_length()
