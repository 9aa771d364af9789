"""The choice of an algorithm: a pure function of shapes, placements and the mesh."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from gemmlab.distributed.algorithm import choose
from gemmlab.distributed.placements import share

WORDS = ("rows", "columns", "replica", "sum")


@given(st.integers(0, 1000), st.integers(1, 40))
def test_shares_cover_an_extent_once(extent: int, parts: int) -> None:
    assert [at for index in range(parts) for at in share(extent, parts, index)] == list(range(extent))


@pytest.mark.parametrize(
    ("extents", "a", "b", "algorithm"),
    [
        ((4096, 4096, 4096), "rows", "replica", "rows"),
        ((4096, 4096, 4096), "replica", "columns", "columns"),
        ((64, 64, 1 << 20), "columns", "rows", "k"),
        ((1 << 20, 64, 64), "rows", "rows", "rows"),
        ((64, 1 << 20, 64), "columns", "columns", "columns"),
        ((8, 8, 8), "replica", "replica", "rows"),
    ],
)
def test_what_moves_least_is_chosen(extents: tuple[int, int, int], a: str, b: str, algorithm: str) -> None:
    assert choose(extents, (a,), (b,), (4,), "cuda").best.algorithm == algorithm


@given(
    st.tuples(*[st.integers(0, 5000)] * 3), st.tuples(*[st.sampled_from(WORDS)] * 2),
    st.tuples(*[st.sampled_from(WORDS)] * 2), st.tuples(*[st.integers(1, 8)] * 2), st.booleans(),
)  # fmt: skip
def test_costs_are_never_negative_and_one_rank_moves_nothing(
    extents: tuple[int, int, int], a: tuple[str, str], b: tuple[str, str], mesh: tuple[int, int], line: bool
) -> None:
    size = 1 if line else 2
    found = choose(extents, a[:size], b[:size], mesh[:size], "cpu")
    assert all(one.bytes_before >= 0 and one.bytes_meanwhile >= 0 and one.seconds >= 0 for one in found.considered)
    assert found.best.seconds == min(one.seconds for one in found.considered)
    assert found.best.algorithm in found.reason
    if set(mesh[:size]) == {1}:
        assert found.best.bytes_before == found.best.bytes_meanwhile == 0


def test_operands_that_fit_a_mesh_move_nothing() -> None:
    fitting = {
        (("rows", "rows"), ("replica", "replica")): ("rows", "rows"),
        (("rows", "replica"), ("replica", "columns")): ("rows", "columns"),
        (("replica", "replica"), ("columns", "columns")): ("columns", "columns"),
        (("rows", "replica"), ("replica", "replica")): ("rows", "columns"),
    }
    for (a, b), c in fitting.items():
        best = choose((4096, 4096, 4096), a, b, (2, 4), "cuda").best
        assert (best.bytes_before, best.bytes_meanwhile, best.c) == (0, 0, c), (a, b, best)
    summed = choose((64, 64, 1 << 20), ("columns", "columns"), ("rows", "rows"), (2, 4), "cuda").best
    assert (summed.algorithm, summed.sums, summed.bytes_before) == ("k", ("sum", "sum"), 0)
    tensor_parallel = choose((4096, 64, 1 << 18), ("rows", "columns"), ("replica", "rows"), (2, 4), "cuda").best
    assert (tensor_parallel.algorithm, tensor_parallel.c) == ("rows-k", ("rows", "columns"))
    fixed = choose((64, 64, 1 << 20), ("columns", "columns"), ("rows", "rows"), (2, 4), "cuda", reproducible=True)
    assert not any(one.sums for one in fixed.considered)
