"""The order of the blocks, and the tree of a sum."""

from __future__ import annotations

import pytest

from gemmlab.plots.pictures.block_order import Order, order_of, turns
from gemmlab.plots.pictures.reduction_tree import rounds
from support.cuda_source import needs_compiler
from support.picture_subjects import subject


@pytest.mark.slow
@needs_compiler
def test_the_order_of_blocks() -> None:
    swizzled = subject("block_swizzle").order
    assert swizzled is not None
    found = order_of(swizzled)
    assert found is not None
    # 17 x 17 tiles in strips of 8, every second one walked upwards, the last of one column.
    down = range(17)
    strips = [*((row, col) for row in down for col in range(8)),
              *((row, col) for row in reversed(down) for col in range(8, 16)),
              *((row, 16) for row in down)]  # fmt: skip
    assert found == Order(tuple(strips), 132, "H200")
    assert [len(wave) for wave in found.waves()] == [132, 132, 25]
    plain = subject("naive").order
    assert plain is not None
    walked = order_of(plain)
    assert walked is not None
    assert walked.tiles == tuple((number % 23, number // 23) for number in range(23 * 23))


def test_only_turns_of_the_way_are_drawn() -> None:
    assert turns([(0, 0), (0, 1), (0, 2), (1, 2), (2, 2)]) == [(0, 0), (0, 2), (2, 2)]
    assert turns([(0, 0), (5, 5)]) == [(0, 0), (5, 5)]


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("kernel", "steps"),
    [
        ("reduce_interleaved", [(128, 128), (64, 64), (32, 32), (16, 16), (8, 8), (4, 4), (2, 2), (1, 1), (1, 1)]),
        ("reduce_unroll_last_warp", [(128, 128), (64, 64), (32, 32), (16, 32), (8, 32), (4, 32), (2, 32), (1, 32)]),
        ("reduce_shuffle", [(128, 256), (64, 256), (32, 256), (16, 256), (8, 256), (8, 32), (4, 32), (2, 32), (1, 32)]),
    ],
)
def test_the_tree_and_who_works_for_nothing(kernel: str, steps: list[tuple[int, int]]) -> None:
    found = rounds(subject(kernel).trace)
    assert [(len(each.used), len(each.working)) for each in found] == steps


@pytest.mark.in_turns(20)
@needs_compiler
def test_which_threads_work_in_a_step() -> None:
    spread, packed = (rounds(subject(kernel).trace) for kernel in ("reduce_interleaved", "reduce_sequential"))
    for step in range(8):
        assert spread[step].working == set(range(0, 256, 2 << step))
        assert packed[step].working == set(range(128 >> step))
