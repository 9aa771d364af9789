"""The local memory of code that moves its stack pointer further than its cubin counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

import gemmlab
from gemmlab.emulator.stack_room import USUAL_STACK, stack_room
from gemmlab.toolchain.cubin import CubinFunction, read_cubin
from support.sass_corpus import written

SOURCE = 'extern "C" __global__ void one(float* x) { x[threadIdx.x] = 1.0f; }'


@pytest.fixture(scope="module")
def function() -> CubinFunction:
    done = gemmlab.launch(SOURCE, "one", 1, 32, [np.zeros(32, np.float32)], device="emulated:sm_90")
    return read_cubin(done.artifact.code, "one").functions["one"]


@pytest.mark.parametrize(
    ("moves", "stack_bytes", "room"),
    [
        ((), 0, 0),
        (("VIADD R1, R1, 0xffffffe8",), 24, 32),  # rounded up to the stack's alignment
        (("VIADD R1, R1, 0xffffffe8",), 0, USUAL_STACK),
        (("IADD3 R1, R1, -0x8, RZ", "IADD3 R1, R1, -0x10, RZ"), 16, USUAL_STACK),
        (("IADD3 R1, R1, 0x8, RZ", "VIADD R2, R2, 0xffffffe8", "VIADD R1, R2, 0xffffffe8"), 0, 0),
    ],
)
def test_what_called_functions_take_has_room(
    moves: tuple[str, ...], stack_bytes: int, room: int, function: CubinFunction
) -> None:
    code = written(*moves, "EXIT").instructions
    assert stack_room(replace(function, stack_bytes=stack_bytes, local_bytes=0), code) == room
