"""Random programs on a GPU: the bits that the emulator gives from the same machine code, and those of g++."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.select import open_device
from support.programs.program import make_data, make_group
from support.programs.running import compile_group, differences, host_compiler, run_on_device, run_on_host

OPTIONS = [(), ("--maxrregcount=32",), ("--ptxas-options=-O1",), ("--device-debug",)]
GROUPS, COUNT = 24, 6
STACK = """
struct alignas(16) Quad { float x[4]; };
__device__ __noinline__ unsigned low_bits(const Quad* q) { return (unsigned)__cvta_generic_to_local(q) & 15; }
__device__ __noinline__ void first(float* p) { *p = 1; }
__device__ __noinline__ void second(float* p) { *p = 2; }
extern "C" __global__ void stack(unsigned* bits, float* p, int i) {
    Quad own = {{1, 2, 3, *p}};
    void (*table[2])(float*) = {first, second};
    table[i](p);
    *bits = low_bits(&own);
}
"""


@pytest.mark.parametrize("number", range(GROUPS))
def test_programs_give_the_same_bits_on_a_gpu(number: int, gpu: CudaDevice, emulated_too: str, tmp_path: Path) -> None:
    rng = np.random.default_rng([13, number])
    group = make_group(rng, COUNT)
    data = [make_data(rng) for _ in group.names]
    code = compile_group(group, gpu.target({}), OPTIONS[number % len(OPTIONS)])
    found, _none = run_on_device(group, code, data, gpu)
    emulated, hazards = run_on_device(group, code, data, open_device(emulated_too))
    assert hazards == []
    assert differences(group, found, emulated) == []
    if host_compiler() is not None:
        assert differences(group, found, run_on_host(group, data, tmp_path)) == []


def test_a_stack_begins_at_a_multiple_of_16_bytes(gpu: CudaDevice, emulated_too: str) -> None:
    for device in (gpu, emulated_too):
        for i in range(2):
            args = [np.ones(1, np.uint32), np.zeros(1, np.float32), i]
            done: Any = gemmlab.launch(STACK, "stack", 1, 1, args, device=device)
            assert [output.tolist() for output in done.outputs] == [[0], [1.0 + i]]
