"""Kernels whose blocks share the k of a tile: the same bits in any order of the blocks, tickets that are zero again."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gemmlab.core.counters import Observation
from gemmlab.core.program import Config
from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.verify.check import check_kernel
from gemmlab.verify.guarded_run import GuardedRun
from support.cuda_source import needs_compiler

OP = GemmOp()
REVERSED = """
__device__ __forceinline__ uint3 block_from_the_end()
{
    return make_uint3(gridDim.x - 1 - blockIdx.x, gridDim.y - 1 - blockIdx.y, 0);
}
#define blockIdx (block_from_the_end())
"""
SMALL_TILE: Config = {"BM": 32, "BN": 64, "BK": 16, "TM": 8}
SMALL: Config = {**SMALL_TILE, "KGROUPS": 2}
each_way = pytest.mark.parametrize(
    ("name", "config"),
    [
        ("split_k", {**SMALL, "SPLITS": 3}), ("split_k", {**SMALL, "SPLITS": 20, "ONCE": 3}),
        ("stream_k", {**SMALL, "BLOCKS": 7}), ("peak_simt", {**SMALL_TILE, "SHARE": 4, "BLOCKS": 7}),
    ],
)  # fmt: skip


@cache
def device(arch: str = "sm_90") -> Device:
    return open_device(f"emulated:{arch}")


def product(kernel: Kernel, problem: GemmProblem, config: Config) -> tuple[bytes, Observation]:
    case = GuardedRun(place(kernel, device(), config), OP, problem, OP.fill(problem, np.random.default_rng(7)))
    observation = case.run(races=True)
    assert isinstance(observation, Observation)
    assert case.nonzero_tickets == 0
    return case.guarded["c"].contents().tobytes(), observation


@pytest.mark.in_turns(20)
@needs_compiler
@each_way
def test_the_order_of_blocks_changes_no_bit(name: str, config: Config, tmp_path: Path) -> None:
    kernel = find_kernel(name)
    path = tmp_path / f"{name}.cu"
    before, opening, behind = kernel.path.read_text(encoding="utf-8").partition('#include "parts.cuh"')
    path.write_text(before + REVERSED + opening + behind)
    problem = GemmProblem(50, 70, 203, alpha=0.5, beta=-1.0)
    results = [product(kernel, problem, config), product(kernel, problem, config)]
    results.append(product(user_kernel(path), problem, config))
    assert len({bits for bits, _ in results}) == 1
    assert [observation.hazards for _, observation in results] == [()] * 3


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.sampled(2)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@each_way
def test_parts_are_right_in_every_layout(name: str, config: Config, layout: str) -> None:
    cases = [
        GemmProblem(40, 60, 100).with_layout(layout),
        GemmProblem(33, 67, 131, 0.5, -1.0).with_layout(layout),
        GemmProblem(64, 64, 64, float("nan"), 2.0).with_layout(layout),
        GemmProblem(31, 5, 0, 1.0, 2.0).with_layout(layout),
        GemmProblem(31, 5, 40, 0.0, 2.0).with_layout(layout),
    ]
    report = check_kernel(find_kernel(name), device("sm_80"), OP, config=config, cases=cases)
    assert report.passed, report.explain()


@pytest.mark.parametrize(
    ("name", "parameter"), [("split_k", "SPLITS"), ("stream_k", "BLOCKS"), ("peak_simt", "BLOCKS")]
)
def test_the_number_of_parts_is_the_launches_alone(name: str, parameter: str) -> None:
    kernel, scalars = find_kernel(name), OP.scalars(GemmProblem(64, 64, 64))
    made = {
        kernel.program(kernel.instantiate(kernel.configure({parameter: number}), scalars), "sm_90").fingerprint
        for number in (1, 5, 33)
    }
    assert len(made) == 1


def test_memory_is_that_of_the_parts_there_are() -> None:
    """No more parts than blocks of k; a single part needs nothing."""
    kernel, config = find_kernel("split_k"), {**SMALL, "SPLITS": 8}
    part = 4 * 32 * 64
    for k, parts in ((0, 0), (16, 0), (17, 2), (1000, 8)):
        problem = GemmProblem(40, 70, k)
        assert kernel.workspace_bytes(problem, kernel.configure(config)) == 4 * parts * part


@pytest.mark.parametrize("fan", [4, 8, 16])
def test_every_tile_has_as_many_tickets_as_its_blocks_use(fan: int) -> None:
    """`tickets_for` of `parts.cuh`, or a few more; none for a single part."""
    kernel, problem = find_kernel("split_k"), GemmProblem(40, 70, 1000)
    tiles, steps = 4, -(-1000 // SMALL["BK"])
    for splits in (1, 2, 3, 4, 5, 8, 9, 16, 40, 64, 1000):
        parts = min(splits, steps)
        found = kernel.tickets(problem, kernel.configure({**SMALL, "SPLITS": splits, "FAN": fan}))
        needed = -(-parts // (fan // 2)) if parts > 1 else 0
        assert tiles * needed <= found <= tiles * max(0, parts - 1), (splits, found)


@pytest.mark.in_turns(20)
@needs_compiler
def test_blocks_of_a_stream_work_alike() -> None:
    """Three tiles of 7 blocks of k on four blocks: 21 steps, 6 and 5 each; a wave of tiles would take 7."""
    kernel = find_kernel("stream_k")
    _, observation = product(kernel, GemmProblem(32, 192, 112), {**SMALL, "BLOCKS": 4})
    # Parts are left and read again for tiles 0 (2 blocks), 1 (2) and 2 (2): each block but one meets twice.
    assert observation.counters.facts()["global_atomic_requests"] == 6


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("shape", "tickets"),
    [
        ((32, 64, 16 * 40), 9),  # one tile of 40 steps: all of 7 blocks, added as 4 and 3, then 2
        ((32, 64, 16 * 12), 3),  # of 12 steps: a block for each 4
        ((32, 64, 16 * 4), 0),  # of 4: not divided
        ((64, 64 * 7, 16 * 9), 0),  # 14 tiles come out even
        ((32, 64 * 22, 16 * 9), 12),  # 22: two rounds of 7 stay whole, the other 8 are divided
        ((32, 64 * 6, 16 * 9), 0),  # 6: it would save two steps
    ],
)
def test_tiles_are_divided_where_it_pays(shape: tuple[int, int, int], tickets: int) -> None:
    """Only tiles of the last two rounds are; each block but the last then ends with a part of one."""
    config = {**SMALL_TILE, "SHARE": 4, "BLOCKS": 7}
    _, observation = product(find_kernel("peak_simt"), GemmProblem(*shape), config)
    assert observation.counters.facts()["global_atomic_requests"] == tickets
