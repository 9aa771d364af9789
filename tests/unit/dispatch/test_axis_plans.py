"""Plans of sums along axes: which kernels for which layouts, and that their launches sum what they should."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gemmlab.devices.device import Window
from gemmlab.devices.select import open_device
from gemmlab.dispatch.axis_plans import AxisPlan, axis_plan
from gemmlab.dispatch.axis_rule import COMPILED, choice_for_axes
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.catalog import find_op
from gemmlab.ops.sums_problem import SumsProblem, middle_axis
from support.cuda_source import needs_compiler

Floats = npt.NDArray[np.float32]


@pytest.mark.parametrize(
    ("shape", "kernel", "config"),
    [
        ((4096, 4096, 1), "sum_rows", {"LOADS": 8, "TEAM": 128, "SPLIT": 1}),
        ((1, 4096, 4096), "sum_columns", {"TEAM": 256, "LANES": 32, "SPLIT": 11}),
        ((1 << 20, 16, 1), "sum_short_rows", {"TEAM": 4}),
        ((1, 1 << 20, 16), "sum_columns", {"TEAM": 256, "LANES": 4, "SPLIT": 342}),
        ((1, 16, 1 << 20), "sum_columns", {"TEAM": 256, "LANES": 128, "SPLIT": 1}),
        ((1024, 1024, 64), "sum_columns", {"TEAM": 256, "LANES": 16, "SPLIT": 1}),
        ((64, 65536, 1), "sum_rows", {"TEAM": 256, "SPLIT": 8}),
        # 512 blocks would be a second wave of 116.
        ((1, 64, 65536), "sum_columns", {"TEAM": 256, "LANES": 64, "SPLIT": 1}),
        # Groups that lie end to end and begin on no vector: as many a block as its shared memory holds.
        ((65536, 16, 3), "sum_staged", {"LOADS": 8, "GROUPS": 40}),
        ((32768, 64, 3), "sum_staged", {"LOADS": 16, "GROUPS": 21}),
        ((65536, 50, 1), "sum_staged", {"LOADS": 8, "GROUPS": 40}),
        # Short rows that begin on no vector have fewer threads.
        ((1 << 20, 3, 1), "sum_short_rows", {"TEAM": 1}),
        ((1 << 20, 6, 1), "sum_short_rows", {"TEAM": 1}),
        ((262144, 15, 1), "sum_short_rows", {"TEAM": 2}),
        # Many small sums share a block, where groups are too few, too long or on vectors.
        ((1024, 16, 3), "sum_columns", {"TEAM": 16, "LANES": 1, "SPLIT": 1}),
        ((65536, 65, 3), "sum_columns", {"TEAM": 16, "LANES": 1, "SPLIT": 1}),
        ((65536, 16, 4), "sum_columns", {"TEAM": 8, "LANES": 1, "SPLIT": 1}),
        # A block for each multiprocessor; and shorter code for small arrays.
        ((1000, 1000, 1), "sum_rows", {"LOADS": 8, "TEAM": 64, "SPLIT": 1}),
        ((512, 1000, 1), "sum_rows", {"LOADS": 8, "TEAM": 128, "SPLIT": 1}),
        ((128, 512, 1), "sum_rows", {"LOADS": 4, "TEAM": 32, "SPLIT": 1}),
    ],
)
def test_the_rule_s_choices(shape: tuple[int, int, int], kernel: str, config: dict[str, int]) -> None:
    assert choice_for_axes(middle_axis(*shape)) == (kernel, config)


def test_any_choice_is_a_legal_configuration_that_takes_the_problem() -> None:
    rng = np.random.default_rng(4)
    op = find_op("sums")
    for _ in range(400):
        outer, length, inner = (int(2 ** rng.uniform(0, 14)) for _ in range(3))
        rows = int(2 ** rng.uniform(0, 8))
        nest = SumsProblem(((outer, rows * (length + 3), 1),), ((length, 1), (rows, length + 3)))
        for problem in (middle_axis(outer, length, inner), middle_axis(outer, length, 1), nest):
            choice = choice_for_axes(problem)
            chosen = find_kernel(choice.kernel)
            assert any({**choice.config, **made} == choice.config for made in COMPILED[choice.kernel])
            assert not chosen.refusal(chosen.configure(choice.config), op.scalars(problem))


def test_axes_are_joined_and_elements_that_lie_together_come_first() -> None:
    whole = axis_plan((4, 5, 6), (120, 24, 4), (0, 1, 2), keepdims=False)
    assert [stage.kernel for stage in whole.stages] == ["reduce_peak"]
    turned = axis_plan((6, 5, 4), (4, 24, 120), (1,), keepdims=True)
    (stage,) = turned.stages
    assert turned.shape == (6, 1, 4)
    assert stage.problem == SumsProblem(((6, 1, 4), (4, 30, 1)), ((5, 6),))
    back = axis_plan((4, 5), (-20, -4), (1,), keepdims=False)
    assert back.first == -16
    assert back.stages[0].problem == SumsProblem(((4, -5, 1),), ((5, 1),))


def summed(device: Any, x: Floats, memory: Floats, plan: AxisPlan) -> Floats:
    """Run a plan for a view of `memory` and return the results."""
    offset = x.ctypes.data - memory.ctypes.data + plan.first
    buffers = [device.upload(memory), *(device.upload(np.full(max(1, n), np.nan, np.float32))
                                       for n in (plan.between, math.prod(plan.shape)))]  # fmt: skip
    source, between, out = buffers
    for index, stage in enumerate(plan.stages, start=1):
        target = out if index == len(plan.stages) else between
        placed = place(find_kernel(stage.kernel), device, stage.config)
        for from_x, from_out in stage.steps:
            here = {"x": Window(source, offset + from_x, 4), "out": Window(target, from_out, 4)}
            bound = placed.bind(find_op(stage.op), stage.problem, here)
            assert bound.observe(races=True).hazards == ()
            assert bound.nonzero_tickets() == 0
            device.free(bound.workspace)
            if bound.tickets is not None:
                device.free(bound.tickets)
        source, offset = target, 0
    found = np.empty(plan.shape, np.float32)
    device.download(out, found)
    for buffer in buffers:
        device.free(buffer)
    return found


def random_view(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """An array of up to six axes with gaps, in any order of axes, and the memory that it is a view of."""
    axes = int(rng.integers(1, 7))
    most = 30_000 ** (1 / axes)
    shape = [int(max(2, most) ** rng.uniform(0, 1.2)) for _ in range(axes)]
    memory = rng.standard_normal(math.prod(shape) + 3).astype(np.float32)
    start = int(rng.integers(4))
    x: Any = memory[start : start + math.prod(shape)].reshape(shape)
    cuts = (slice(None), slice(None), slice(None, None, 2), slice(None, None, -1), slice(1, None))
    x = x[tuple(cuts[int(rng.integers(len(cuts)))] for _ in range(axes))].transpose(rng.permutation(axes))
    if rng.random() < 0.2:
        x = np.broadcast_to(x[..., None], (*x.shape, 3))
    return x, memory


@pytest.mark.in_turns(20)
@needs_compiler
def test_any_view_along_any_axes() -> None:
    device = open_device("emulated:sm_90")
    rng = np.random.default_rng(7)
    stages = set()
    for _ in range(60):
        x, memory = random_view(rng)
        axes = tuple(sorted(rng.permutation(x.ndim)[: int(rng.integers(0, x.ndim + 1))].tolist()))
        plan = axis_plan(x.shape, x.strides, axes, keepdims=bool(rng.integers(2)))
        want = x.sum(axis=axes, dtype=np.float64).reshape(plan.shape)
        bound = 60 * 2.0**-24 * np.abs(x).sum(axis=axes, dtype=np.float64).reshape(plan.shape)
        if want.size:
            assert (np.abs(summed(device, x, memory, plan) - want) <= bound).all(), (x.shape, x.strides, axes)
        stages.add(len(plan.stages))
    assert stages >= {0, 1}


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("shape", "start", "kernel"),
    [
        ((10_599, 16, 3), 0, "sum_staged"), ((10_561, 16, 3), 1, "sum_staged"), ((36_101, 5, 3), 3, "sum_staged"),
        ((180_001, 3, 1), 2, "sum_rows"), ((2773, 64, 3), 0, "sum_staged"), ((9001, 50, 1), 2, "sum_staged"),
        ((65_601, 16, 1), 0, "sum_short_rows"), ((65_601, 16, 1), 1, "sum_short_rows"),
        ((1000, 250, 1), 0, "sum_rows"),
    ],
)  # fmt: skip
def test_short_groups_wherever_they_start(shape: tuple[int, int, int], start: int, kernel: str) -> None:
    memory = np.random.default_rng(5).standard_normal(math.prod(shape) + 4).astype(np.float32)
    x = memory[start : start + math.prod(shape)].reshape(shape)
    plan = axis_plan(x.shape, x.strides, (1,), keepdims=False)
    assert [stage.kernel for stage in plan.stages] == [kernel]
    found = summed(open_device("emulated:sm_90"), x, memory, plan)
    bound = 60 * 2.0**-24 * np.abs(x).sum(axis=1, dtype=np.float64)
    assert (np.abs(found - x.sum(axis=1, dtype=np.float64)) <= bound).all()
