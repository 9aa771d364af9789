"""`gemmlab.distributed.gemm` on ranks of gloo: against one process, with every placement, and when ranks disagree."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

import gemmlab.distributed
from support.distributed_scenes import DISAGREED, PANEL, play, with_special_values
from support.ranks import on_ranks

pytestmark = [pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]


@cache
def played(ranks: int) -> list[dict[str, Any]]:
    answers = on_ranks(ranks, play, ranks)
    assert all(isinstance(answer, dict) for answer in answers), next(x for x in answers if not isinstance(x, dict))
    return answers


@pytest.mark.parametrize(
    ("ranks", "scene"),
    [
        (2, "on_a_line"),
        (3, "on_a_line"),
        (4, "on_a_grid"),
        (3, "on_a_grid"),
        (2, "by_operator"),
        (2, "by_terms"),
        (3, "by_terms"),
    ],
)
def test_every_placement_gives_the_product(ranks: int, scene: str) -> None:
    for answer in played(ranks):
        assert max(answer[scene]) <= 1.0


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_every_algorithm_gives_the_product_and_moves_no_more_than_its_formula(ranks: int) -> None:
    seen = set()
    for answer in played(ranks):
        for algorithm, error, received in answer["every_algorithm"]:
            seen.add(algorithm)
            assert error <= 1.0, algorithm
            assert received <= 1.0, algorithm
    of_all = zip(*(answer["every_algorithm"] for answer in played(ranks)), strict=True)
    # Of bytes before and meanwhile, two ranks may receive most.
    assert all(max(received) == 0 or max(received) > 0.5 for received in ([one[2] for one in case] for case in of_all))
    assert seen >= {"rows", "columns", "k", "grid", "rows-k", "columns-k"}


@pytest.mark.parametrize("ranks", [3, 4])
def test_meshes_in_another_order_and_with_fewer_processes(ranks: int) -> None:
    for answer in played(ranks):
        assert max(answer["another_order"]) <= 1e-5


@pytest.mark.parametrize("ranks", [2, 4])
def test_placements_that_only_torch_can_change(ranks: int) -> None:
    for answer in played(ranks):
        assert max(answer["other_placements"]) <= 1.0


def test_bits_do_not_depend_on_the_number_of_ranks() -> None:
    (alone,) = played(1)
    for ranks in (2, 3, 4):
        for answer in played(ranks):
            np.testing.assert_array_equal(answer["bits"], alone["bits"])


@pytest.mark.parametrize("reproducible", [True, False])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_bytes_are_those_of_the_formula_and_buffers_are_as_stated(ranks: int, reproducible: bool) -> None:
    answers = [answer["traffic"][not reproducible] for answer in played(ranks)]
    best = answers[0][0]
    assert best.bytes_before == 0
    for other, counted in answers:
        assert other == best
        assert counted.largest_buffer <= 2 * PANEL * 4 * 96
    # The formula is that of the rank that receives most, which is another where parts are uneven.
    assert max(counted.received for _, counted in answers) == best.bytes_meanwhile


def test_special_values_are_data() -> None:
    a, b = with_special_values()
    for answer in played(2):
        found = answer["special_values"]
        np.testing.assert_array_equal(np.isnan(found), np.isnan((a @ b).numpy()))
        np.testing.assert_array_equal(np.isinf(found), np.isinf((a @ b).numpy()))


def test_ranks_that_disagree_are_told_so_on_every_rank() -> None:
    for answer in played(2):
        for text, named in zip(answer["disagreement"], DISAGREED, strict=True):
            assert f"the ranks disagree about {named} (" in text
        assert "alpha (1.0 on rank 0; 2.0 on rank 1); all of them" in answer["disagreement"][1]


def test_wrong_arguments_of_one_rank_are_an_error_of_all_and_nobody_waits() -> None:
    first, second = (answer["wrong_on_one_rank"] for answer in played(2))
    named = [
        "precision is 'foo'",
        "beta is 1.0, so c is needed",
        "traffic is int",
        "alpha is 'x'",
        "k differs",
        "b is",
        "a requires a gradient",
        "this rank's part of b has 3 rows; it must have 4, as torch cuts 8 rows",
        "this rank's part of b has 3 columns; it must have 4",
        "this rank's part of a has 3 rows; it must have 4",
    ]
    for own, other, part in zip(first, second, named, strict=True):
        assert part in own
        assert "the arguments on rank 0 are wrong" in other


def test_parts_may_be_cut_otherwise_than_torch_cuts_if_all_of_them_are_the_operand() -> None:
    for answer in played(4):
        errors, texts = answer["other_cuts"]
        assert max(errors) <= 1.0
        named = [
            "rank 3's part of a has 9 rows and rank 2's has 15; both must have the same rows of a",
            "rank 3's part of a has 9 rows and rank 2's has 15",
            "rank 2's part of b has 10 columns and rank 0's has 9",
            "a has 30 rows; the ranks' parts of it have 25 together: 8 on ranks 0, 1; 3 on rank 2; 6 on rank 3",
            "other cuts of a's rows are not taken here, because partial sums are added",
            "other cuts of a's rows are not taken here, because a must be redistributed",
            "other cuts of a's rows are not taken here, because c is given",
        ]
        for text, part in zip(texts, named, strict=True):
            assert part in text


def leave(rank: int) -> Any:
    mesh = init_device_mesh("cpu", (2,))
    a, b = (distribute_tensor(torch.ones(8, 8), mesh, [Shard(0)]) for _ in range(2))
    if rank == 1:
        os._exit(0)
    return gemmlab.distributed.gemm(a, b).shape


def test_a_rank_that_ends_is_an_error_of_the_others_not_a_hang() -> None:
    first, second = on_ranks(2, leave, seconds=10)
    assert second is None
    told = first.splitlines()[0]
    assert "DeviceError: gemmlab.distributed.gemm: another rank did not take part" in told
    # The cause, without gloo's place in its source and its advice.
    assert re.search(r"allows \([A-Z][^/]*\d\)$", told) or told.endswith("(Broken pipe)")
