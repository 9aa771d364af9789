"""`gemmlab.distributed.gemm` on GPUs, one for each rank: the scenes of the CPU tests, by copy engines and by NCCL."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from gemmlab.distributed import in_turns
from gemmlab.distributed.peer_memory import peer_memory
from support.distributed_memory import measured
from support.distributed_scenes import DISAGREED, line_or_grid, play, with_special_values
from support.ranks import on_ranks

pytestmark = [pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]
MOST = 4


OTHER = 16 << 20
"""Bytes that the workspace of a kernel may take, and the flags of symmetric memory."""


def played_there(rank: int, ranks: int, by_copies: bool) -> dict[str, Any]:
    if not by_copies:
        vars(in_turns)["common_memory"] = lambda *_: None
    device = torch.device("cuda", rank)
    shared = peer_memory(line_or_grid(ranks).get_group(0), device) is not None
    return play(rank, ranks) | {"shared": shared}


def skip_without(ranks: int) -> None:
    here = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if here < ranks:
        pytest.skip(f"needs {ranks} GPUs; here are {here}")


@cache
def played(ranks: int, by_copies: bool) -> list[dict[str, Any]]:
    skip_without(ranks)
    answers = on_ranks(ranks, played_there, ranks, by_copies, backend="nccl")
    assert all(isinstance(answer, dict) for answer in answers), next(x for x in answers if not isinstance(x, dict))
    return answers


@pytest.mark.parametrize("by_copies", [True, False])
@pytest.mark.parametrize("ranks", range(2, MOST + 1))
def test_every_placement_gives_the_product(ranks: int, by_copies: bool) -> None:
    for answer in played(ranks, by_copies):
        assert answer["shared"]
        for scene in {"on_a_line", "by_terms", "on_a_grid", "by_operator"} & set(answer):
            assert max(answer[scene]) <= 1.0


@pytest.mark.parametrize("by_copies", [True, False])
@pytest.mark.parametrize("ranks", range(2, MOST + 1))
def test_bits_do_not_depend_on_the_number_of_gpus(ranks: int, by_copies: bool) -> None:
    (alone,) = played(1, True)
    for answer in played(ranks, by_copies):
        np.testing.assert_array_equal(answer["bits"], alone["bits"])


@pytest.mark.parametrize("by_copies", [True, False])
def test_special_values_are_data_and_ranks_that_disagree_are_told(by_copies: bool) -> None:
    with_nan, with_infinity = with_special_values()
    expected = (with_nan @ with_infinity).numpy()
    for answer in played(2, by_copies):
        np.testing.assert_array_equal(np.isnan(answer["special_values"]), np.isnan(expected))
        for text, named in zip(answer["disagreement"], DISAGREED, strict=True):
            assert f"the ranks disagree about {named}" in text


@pytest.mark.parametrize("by_copies", [True, False])
@pytest.mark.parametrize("ranks", range(2, MOST + 1))
def test_bytes_are_those_of_the_formula(ranks: int, by_copies: bool) -> None:
    for answer in played(ranks, by_copies):
        for best, counted in answer["traffic"]:
            assert counted.received <= 1.1 * (best.bytes_before + best.bytes_meanwhile)


@pytest.mark.parametrize("by_copies", [True, False])
@pytest.mark.parametrize("ranks", range(2, MOST + 1))
def test_every_algorithm_gives_the_product_and_moves_no_more_than_its_formula(ranks: int, by_copies: bool) -> None:
    for answer in played(ranks, by_copies):
        for algorithm, error, received in answer["every_algorithm"]:
            assert error <= 1.0, algorithm
            assert received <= 1.1, algorithm


def peak(call: Callable[[], Any]) -> int:
    """The most memory of torch's allocator during a call, without what it had before."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated() - before)


def measured_there(rank: int, by_copies: bool) -> Any:
    if not by_copies:
        vars(in_turns)["common_memory"] = lambda *_: None
    return measured(rank, peak)


@pytest.mark.parametrize("by_copies", [True, False])
def test_peak_of_memory_is_the_part_of_c_and_the_stated_buffers(by_copies: bool) -> None:
    """Panels that copy engines send lie in symmetric memory, which torch's allocator does not count."""
    skip_without(MOST)
    answers = on_ranks(MOST, measured_there, by_copies, backend="nccl")
    assert all(isinstance(answer, list) for answer in answers), next(x for x in answers if not isinstance(x, list))
    for answer in answers:
        for case, most, stated in answer:
            assert most <= stated + OTHER, (case, most / 2**20, stated / 2**20)
