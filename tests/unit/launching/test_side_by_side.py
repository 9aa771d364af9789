"""Launches and checks from several threads at once come out as one after the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gemmlab.core.counters import Observation
from gemmlab.core.program import Launch
from gemmlab.devices.device import Device
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.verify.check import check_kernel
from gemmlab.verify.check_report import CheckReport
from support.cuda_source import needs_compiler, program
from support.side_by_side import differing, jobs, together

COUNTED = """
extern "C" __global__ void doubled(const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2 * x[i];
}
"""


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@needs_compiler
@pytest.mark.parametrize("threads", [2, 8])
@pytest.mark.parametrize("opened", [False, True])
def test_launches_from_several_threads_are_those_of_one(threads: int, *, opened: bool) -> None:
    device: str | Device = open_device("emulated:sm_90") if opened else "emulated:sm_90"
    work = jobs(np.random.default_rng([threads, opened]), 36)
    assert differing(work, threads, rounds=3, device=device) == []


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("threads", [2, 8])
def test_one_open_device_counts_each_launch_apart(threads: int) -> None:
    device = EmulatedDevice("sm_90")
    loaded = device.load(device.build(program(COUNTED, "doubled")))
    wrong: list[Observation] = []

    def share(number: int) -> None:
        blocks = 2 + number
        x = np.full(64 * blocks, number, np.float32)
        for _ in range(40):
            buffers = device.upload(x), device.allocate(x.nbytes)
            seen = device.observe(loaded, Launch(buffers, (blocks, 1, 1), (64, 1, 1)))
            y = np.empty_like(x)
            device.download(buffers[1], y)
            for buffer in buffers:
                device.free(buffer)
            load = next(site for site in seen.counters.sites if site.opcode.startswith("LDG"))
            expected = (2 * blocks, 8 * blocks, 8 * blocks)
            if (load.requests, load.sectors, load.sectors_distinct) != expected or seen.hazards or (y != 2 * x).any():
                wrong.append(seen)

    together(share, threads)
    assert wrong == []


@pytest.mark.in_turns(20)
@needs_compiler
def test_memory_that_another_thread_frees_stays_while_a_launch_runs() -> None:
    device = EmulatedDevice("sm_90")
    buffer = device.upload(np.ones(64, np.float32))
    reach = device._memory.reach()
    device.free(buffer)
    assert reach.find(buffer.address) is buffer
    assert device._memory.reach().find(buffer.address) is None


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("shared", [False, True])
def test_checks_from_several_threads_are_those_of_one(*, shared: bool) -> None:
    op, one = GemmOp(), open_device("emulated:sm_90")
    kernels, cases = ("naive", "block_tile", "vector_load", "maxas_64"), op.parse_sizes("64x64x64,128x64x32")

    def checked(kernel: str) -> CheckReport:
        device = one if shared else open_device("emulated:sm_90")
        return replace(check_kernel(find_kernel(kernel), device, op, cases=cases), seconds=0.0)

    alone = {kernel: checked(kernel) for kernel in kernels}
    assert all(report.passed for report in alone.values())
    found: list[CheckReport] = []
    together(lambda number: found.append(checked(kernels[number % 4])), 8)
    assert sorted(found, key=repr) == sorted([*alone.values()] * 2, key=repr)
