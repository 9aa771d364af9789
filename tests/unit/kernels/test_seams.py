"""A row or a column beyond the last whole tile: right in every layout, without tiles, and without a hazard."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from gemmlab.core.counters import Observation
from gemmlab.core.errors import UsageError
from gemmlab.core.expr import parse
from gemmlab.core.program import Config
from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.verify.check import check_kernel
from gemmlab.verify.guarded_run import GuardedRun
from support.cuda_source import needs_compiler

OP = GemmOp()
KERNEL = find_kernel("split_k")
CONFIGURATIONS: list[Config] = [
    {"BM": 32, "BN": 64, "BK": 16, "TM": 8, "KGROUPS": 2, "SPLITS": 1, "SEAM": 1},
    {"BM": 32, "BN": 32, "BK": 64, "TM": 4, "TN": 4, "KGROUPS": 4, "SPLITS": 1, "SEAM": 3},
]
each_configuration = pytest.mark.parametrize("config", CONFIGURATIONS, ids=lambda config: f"SEAM{config['SEAM']}")


@cache
def device(arch: str = "sm_90") -> Device:
    return open_device(f"emulated:{arch}")


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.sampled(2)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@each_configuration
def test_seams_are_right_in_every_layout(config: Config, layout: str) -> None:
    """Below the tiles, beside them, both, none; more k than is in shared memory at a time; and no k at all."""
    cases = [
        GemmProblem(33, 65, 71, 0.5, -1.0).with_layout(layout),
        GemmProblem(32, 129, 40, lda=141, ldb=143, ldc=133).with_layout(layout),
        GemmProblem(67, 64, 33).with_layout(layout),
        GemmProblem(34, 33, 2400).with_layout(layout),
        GemmProblem(1, 3, 40).with_layout(layout),
        GemmProblem(33, 65, 16, float("nan"), 2.0).with_layout(layout),
        GemmProblem(33, 65, 0, 1.0, 2.0).with_layout(layout),
        GemmProblem(65, 33, 40, 0.0, 2.0).with_layout(layout),
    ]
    report = check_kernel(KERNEL, device("sm_80"), OP, config=config, cases=cases)
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@needs_compiler
@each_configuration
def test_a_seam_changes_no_bit_of_the_tiles_and_none_from_run_to_run(config: Config) -> None:
    """Tiles have the bits that they have where C ends with them."""

    rng = np.random.default_rng(3)
    shapes = {"a": (65, 100), "b": (100, 65), "c": (65, 65)}
    every = {name: rng.random(shape, np.float32) for name, shape in shapes.items()}

    def product(m: int, n: int, used: Config) -> np.ndarray:
        problem = GemmProblem(m, n, 100)
        operands = {"a": every["a"][:m], "b": every["b"][:, :n], "c": every["c"][:m, :n]}
        case = GuardedRun(place(KERNEL, device(), used), OP, problem, operands)
        observation = case.run(races=True)
        assert isinstance(observation, Observation)
        assert observation.hazards == ()
        return np.array(case.guarded["c"].contents())

    first, again = product(65, 65, config), product(65, 65, config)
    assert first.tobytes() == again.tobytes()
    assert np.array_equal(first[:64, :64], product(64, 64, {**config, "SEAM": 0}))


def test_a_seam_needs_all_of_k_in_one_part() -> None:
    assert KERNEL.configure({"SPLITS": 1, "SEAM": 1})["SEAM"] == 1
    with pytest.raises(UsageError, match="SEAM"):
        KERNEL.configure({"SPLITS": 2, "SEAM": 1})
    with pytest.raises(UsageError, match="SEAM"):
        KERNEL.configure({"SPLITS": 1, "SEAM": 5})


def test_blocks_of_a_seam_are_no_tiles() -> None:
    """The rule of waves counts tiles, a launch has blocks for the seam, too."""
    names = {**KERNEL.params, "SPLITS": 1, "SEAM": 1, "K": 513}

    def counted(m: int, n: int) -> tuple[int, int]:
        here = {**names, "M": m, "N": n}
        return parse(KERNEL.tiles[0]).whole(here), parse(KERNEL.grid[0]).whole(here)

    assert counted(513, 513) == (64, 64 + 17 + 16)
    assert counted(512, 513) == (64, 64 + 16)
    assert counted(513, 512) == (64, 64 + 16)
    assert counted(514, 512) == (72, 72)
    assert counted(1, 1) == (1, 1)
    assert counted(0, 5) == (0, 0)
