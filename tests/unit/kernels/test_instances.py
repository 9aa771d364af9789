"""Instances of kernels for a problem, without memory, and their code on a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from gemmlab.core.program import Program
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.instances import LoadedCode, instance_for, load
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem


class BuildingDevice:
    """A device that only counts the programs it builds; loaded code is the program's entry in a list."""

    def __init__(self) -> None:
        self.built = list[str]()

    def target(self, _config: Mapping[str, int]) -> str:
        return "sm_90"

    def build(self, program: Program) -> str:
        self.built.append(program.entry)
        return program.entry

    def load(self, artifact: str) -> list[str]:
        return [artifact]


def test_pointers_are_zero_and_scalars_the_problem_s() -> None:
    kernel = find_kernel("split_k")
    problem = GemmProblem(128, 256, 64, trans_a=True)
    instance = instance_for(kernel, kernel.params, GemmOp().scalars(problem))
    (launch,) = instance.launches
    assert instance.parameters == {**kernel.params, "TRANS_A": 1, "TRANS_B": 0}
    by_name = dict(zip(kernel.args, launch.args, strict=True))
    assert [by_name[name] for name in ("a", "b", "c", "workspace", "tickets")] == [0] * 5
    assert [by_name[name] for name in ("m", "n", "k", "lda")] == [128, 256, 64, problem.lda]
    assert [kernel.args[at] for at in instance.places("c", "alpha", "nothing", "a")] == ["c", "alpha", "a"]


def test_values_replace_the_problem_s() -> None:
    kernel = find_kernel("naive")
    instance = instance_for(kernel, kernel.params, GemmOp().scalars(GemmProblem(8, 8, 8)), k=np.int64(5))
    (launch,) = instance.launches
    (at,) = instance.places("k")
    assert launch.args[at] == 5


@pytest.mark.parametrize("again", [{}, {"UNROLL": 64}])
def test_code_is_loaded_once_a_program(again: Mapping[str, int]) -> None:
    device: Any = BuildingDevice()
    kernel = find_kernel("block_tile")
    code = LoadedCode(device)
    first = code.load(kernel, kernel.params)
    assert code.load(kernel, {**kernel.params, **again}) is first
    other = code.load(kernel, {**kernel.params, "BM": 8})
    assert other is not first
    assert len(device.built) == 2
    # The function stores nothing: a device decides for itself what it keeps.
    assert load(kernel, device, kernel.params) == first
    assert len(device.built) == 3
