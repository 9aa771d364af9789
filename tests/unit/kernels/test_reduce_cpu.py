"""The CPU's ladder of sums: right at every length, operator and width, and in the order that its bound is of."""

from __future__ import annotations

import numpy as np
import pytest

from gemmlab.devices.cpu import CpuDevice
from gemmlab.ir.target import host_target
from gemmlab.kernels.bound import bind
from gemmlab.kernels.catalog import find_kernel, ladder
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.op import Float32Array
from gemmlab.ops.reduce import ReduceOp, ReduceProblem
from gemmlab.verify.check import check_kernel

OP = ReduceOp()
RUNGS = ladder("reduce", "cpu")
NAMES = [kernel.id for kernel in RUNGS]
each_rung = pytest.mark.parametrize("kernel", [pytest.param(kernel, id=kernel.id) for kernel in RUNGS])
UNIT = 2.0**-24


def run(kernel: Kernel, x: Float32Array, operator: str = "sum", threads: int = 1) -> np.float32:
    out = np.full(1, np.nan, np.float32)
    bind(kernel, CpuDevice(), OP, ReduceProblem(x.size, operator), {"x": x, "out": out}, threads=threads).run()
    return np.float32(out[0])


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("lanes", [width for width in (4, 8, 16) if width <= host_target().lanes])
@each_rung
def test_a_rung_is_right_at_every_length_and_width(kernel: Kernel, lanes: int) -> None:
    report = check_kernel(kernel, CpuDevice(), OP, config={"LANES": lanes}, threads=2 if kernel.threaded else 1)
    assert report.passed, report.explain()
    assert report.cases > 100


@pytest.mark.parametrize("count", [1, 2, 3, 16])
def test_any_number_of_accumulators(count: int) -> None:
    report = check_kernel(find_kernel("reduce_accumulators"), CpuDevice(), OP, config={"ACCUMULATORS": count})
    assert report.passed, report.explain()


def test_parts_are_the_same_on_any_number_of_threads() -> None:
    threaded = find_kernel("reduce_threaded")
    for n in (65_535, 65_536, 65_537, 1_000_003):
        x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        assert len({run(threaded, x, threads=threads).tobytes() for threads in (1, 2, 5)}) == 1


def test_shorter_chains_are_closer() -> None:
    x = np.full(1 << 20, 0.1, np.float32)
    exact = float(x[0]) * x.size
    errors = {kernel: abs(float(run(find_kernel(kernel), x)) - exact) / exact for kernel in NAMES}
    assert errors["reduce_scalar"] > 4 * errors["reduce_accumulators"] > 40 * errors["reduce_vector"]
    for kernel, error in zip(RUNGS, errors.values(), strict=True):
        scalars = OP.scalars(ReduceProblem(x.size))
        roundings = kernel.roundings({**kernel.configure(), "OPERATOR": 0}, scalars)
        assert roundings is not None
        assert error <= roundings * UNIT


@each_rung
def test_the_greatest_and_the_least_are_nan_where_any_is(kernel: Kernel) -> None:
    for n, at in ((100, 99), (70_001, 70_000), (70_001, 12_345)):
        x = np.random.default_rng(2).standard_normal(n).astype(np.float32)
        assert run(kernel, x, "max") == x.max()
        assert run(kernel, x, "min") == x.min()
        x[at] = np.nan
        assert np.isnan(run(kernel, x, "max"))
        assert np.isnan(run(kernel, x, "min"))
