"""Rows and columns without shared memory: right in every layout, and the same bits for any address and cache policy."""

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
CONFIGURATIONS: list[tuple[str, Config]] = [
    ("dot_product", {"LINES": 4, "BK": 256, "LOADS": 4}),
    ("dot_product", {"LINES": 2, "STRIP": 2, "BK": 128, "LOADS": 2, "SPLITS": 5, "ONCE": 2}),
    ("dot_product", {"LINES": 1, "BK": 512, "LOADS": 8, "SPLITS": 300, "ONCE": 0}),
    ("row_product", {"BK": 64, "WARPS": 4, "SPLITS": 9, "ONCE": 0}),
    ("row_product", {"STRIP": 3, "BK": 256, "WARPS": 16, "SPLITS": 2, "ONCE": 2}),
]
each_configuration = pytest.mark.parametrize(("name", "config"), CONFIGURATIONS)


@cache
def device(arch: str = "sm_90") -> Device:
    return open_device(f"emulated:{arch}")


def product(
    name: str, problem: GemmProblem, operands: dict[str, np.ndarray], config: Config, shift: int = 0
) -> bytes:  # fmt: skip
    case = GuardedRun(place(find_kernel(name), device(), config), OP, problem, operands, shift=shift)
    observation = case.run(races=True)
    assert isinstance(observation, Observation)
    assert observation.hazards == ()
    assert case.nonzero_tickets == 0
    return case.guarded["c"].contents().tobytes()


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@each_configuration
def test_products_are_right_in_every_layout(name: str, config: Config, layout: str) -> None:
    """Rows, columns, one element, more lines than the kernel is for; k on and off its blocks, and none."""
    cases = [
        GemmProblem(1, 9, 1100, 0.5, -1.0).with_layout(layout),
        GemmProblem(11, 1, 771).with_layout(layout),
        GemmProblem(3, 5, 130, lda=133, ldb=139, ldc=7).with_layout(layout),
        GemmProblem(1, 1, 5003).with_layout(layout),
        GemmProblem(2, 2, 3).with_layout(layout),
        GemmProblem(1, 6, 128, float("nan"), 2.0).with_layout(layout),
        GemmProblem(5, 1, 0, 1.0, 2.0).with_layout(layout),
        GemmProblem(5, 1, 40, 0.0, 2.0).with_layout(layout),
    ]
    report = check_kernel(find_kernel(name), device("sm_80"), OP, config=config, cases=cases)
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@each_configuration
def test_addresses_and_caches_change_no_bit(name: str, config: Config) -> None:
    """Words are added in one order, whether they come four at a time or one by one, kept or not."""
    for problem in (GemmProblem(2, 1, 2600), GemmProblem(1, 132, 300)):
        operands = OP.fill(problem, np.random.default_rng(5))
        results = {product(name, problem, operands, config), product(name, problem, operands, config)}
        results |= {product(name, problem, operands, config, shift=1)}
        results |= {product(name, problem, operands, {**config, "ONCE": once}) for once in (0, 2)}
        assert len(results) == 1, problem.label
