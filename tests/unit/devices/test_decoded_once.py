"""Machine code is decoded once, unless it knows where its variables lie."""

from __future__ import annotations

import numpy as np
import pytest

from gemmlab.core.program import Launch
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.devices.emulated_code import EmulatedLoaded
from support.cuda_source import needs_compiler, program

COUNTS = """__device__ int count;
extern "C" __global__ void counts(int* out) { out[0] = ++count; }
"""
PLAIN = """__device__ constexpr int STEP = 3;
extern "C" __global__ void plain(int* out) { out[0] += STEP; }
"""


def loaded_twice(source: str, name: str) -> tuple[EmulatedDevice, EmulatedLoaded, EmulatedLoaded]:
    device = EmulatedDevice("sm_90")
    artifact = device.build(program(source, name))
    return device, device.load(artifact), device.load(artifact)


def run(device: EmulatedDevice, loaded: EmulatedLoaded) -> int:
    out = np.zeros(1, np.int32)
    buffer = device.upload(out)
    device.launch(loaded, Launch((buffer,)))
    device.download(buffer, out)
    return int(out[0])


@needs_compiler
def test_each_load_has_variables_of_its_own() -> None:
    device, one, two = loaded_twice(COUNTS, "counts")
    assert one.image is not two.image
    assert [run(device, each) for each in (one, one, two)] == [1, 2, 1]


@pytest.mark.in_turns(20)
@needs_compiler
def test_code_that_asks_for_no_variable_is_decoded_once() -> None:
    device, one, two = loaded_twice(PLAIN, "plain")
    assert one.image is two.image
    assert [run(device, each) for each in (one, two)] == [3, 3]
