"""Rungs as Nsight Compute profiled them whole, ready to be emulated: of `benchmarks/results/h200/ncu.json`."""

from __future__ import annotations

from functools import cache

import numpy as np
import profiled
import pytest

from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.kernels.bound import BoundKernel, bind
from gemmlab.kernels.catalog import find_kernel
from gemmlab.observe.profile import Profile, Profiles
from gemmlab.observe.profile_reader import load_profiles
from gemmlab.ops.gemm import GemmOp, GemmProblem

PATH = profiled.PATH.with_name("ncu.json")
SIZE = 512


@cache
def _profiles() -> Profiles:
    return load_profiles(PATH)


def recorded(rung: str) -> tuple[Profile, BoundKernel]:
    """What was profiled of a rung, and the same launch on the emulator. Skips the test where its code has changed."""
    op, problem = GemmOp(), GemmProblem(SIZE, SIZE, SIZE)
    (one,) = (one for one in _profiles().profiles if (one.name, one.size) == (rung, problem.label))
    arrays = {name: array.reshape(-1) for name, array in op.fill(problem, np.random.default_rng(1)).items()}
    device = EmulatedDevice(profiled.ARCH)
    bound = bind(find_kernel(rung), device, op, problem, arrays, config=one.facts["config"])
    artifact = bound.loaded.artifact
    if artifact.digest != one.facts["code_sha256"]:
        pytest.skip(f"{rung} has changed since, or {artifact.compiler} makes other code of it")
    return one, bound
