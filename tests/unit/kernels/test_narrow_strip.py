"""A kernel for a few rows or columns: the same bits however it is called, no hazard, any configuration right."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from gemmlab.core.counters import Observation
from gemmlab.core.program import Config
from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.verify.check import check_kernel
from gemmlab.verify.guarded_run import GuardedRun
from support.cuda_source import needs_compiler

pytestmark = needs_compiler
OP = GemmOp()
KERNEL = find_kernel("narrow_strip")
SMALL: Config = {"STRIP": 4, "LINES": 1, "BK": 16, "WARPS": 2, "SPLITS": 3}
CONFIGURATIONS: list[Config] = [
    SMALL,
    {"STRIP": 1, "LINES": 1, "BK": 32, "WARPS": 8, "STAGES": 3},
    {"STRIP": 3, "LINES": 2, "BK": 64, "WARPS": 1, "STAGES": 2, "SPLITS": 11},
    {"STRIP": 16, "LINES": 4, "BK": 8, "WARPS": 4, "STAGES": 4, "SPLITS": 2, "ONCE": 1},
    {"STRIP": 32, "LINES": 2, "BK": 16, "WARPS": 2, "STAGES": 3},
]


@cache
def device(arch: str = "sm_90") -> Device:
    return open_device(f"emulated:{arch}")


def product(problem: GemmProblem, operands: dict[str, np.ndarray], config: Config) -> np.ndarray:
    case = GuardedRun(place(KERNEL, device(), config), OP, problem, operands)
    observation = case.run(races=True)
    assert isinstance(observation, Observation)
    assert observation.hazards == ()
    assert case.nonzero_tickets == 0
    return np.array(case.guarded["c"].contents())


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("config", CONFIGURATIONS, ids=lambda config: "_".join(str(value) for value in config.values()))
def test_edges_are_right_in_every_layout(config: Config, layout: str) -> None:
    """Narrow ones and wide ones, on and off the tile, aligned to 16 bytes or not."""
    cases = [
        GemmProblem(5, 132, 72, 0.5, -1.0).with_layout(layout),
        GemmProblem(132, 3, 71).with_layout(layout),
        GemmProblem(1, 65, 130, lda=133, ldb=132, ldc=67).with_layout(layout),
        GemmProblem(40, 37, 64).with_layout(layout),
        GemmProblem(1, 1, 200).with_layout(layout),
        GemmProblem(16, 64, 64, float("nan"), 2.0).with_layout(layout),
        GemmProblem(31, 5, 0, 1.0, 2.0).with_layout(layout),
        GemmProblem(31, 5, 40, 0.0, 2.0).with_layout(layout),
    ]
    report = check_kernel(KERNEL, device("sm_80"), OP, config=config, cases=cases)
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("config", [SMALL, {**SMALL, "SPLITS": 1, "LINES": 4}], ids=["parts", "one part"])
def test_a_row_has_the_same_bits_whatever_is_beside_it(config: Config) -> None:
    """The order of a sum depends on k and the configuration: not on the other rows, nor on which operand is wide."""
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((70, 203), np.float32), rng.standard_normal((203, 41), np.float32)

    def rows(count: int) -> np.ndarray:
        operands = {"a": a[:count].copy(), "b": b, "c": np.zeros((count, 41), np.float32)}
        return product(GemmProblem(count, 41, 203), operands, config)

    tall = rows(70)
    assert tall.tobytes() == rows(70).tobytes()
    for count in (1, 5, 41):
        assert tall[:count].tobytes() == rows(count).tobytes()
