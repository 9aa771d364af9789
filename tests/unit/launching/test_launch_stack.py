"""The stack on the emulated device: frames of any size, calls by address, the room that a kernel states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gemmlab

ARCHS = ["sm_80", "sm_89", "sm_90"]
BY_ADDRESS = """
__device__ __noinline__ void f(float* p) { *p = 1; }
__device__ __noinline__ void g(float* p) { *p = 2; }
__global__ void by_address(float* p, int i) {
    void (*table[2])(float*) = {f, g};
    table[i](p);
}
"""


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("index", [0, 1])
def test_a_stack_that_is_no_multiple_of_16_bytes_has_its_top_at_one(arch: str, index: int) -> None:
    # The kernel's frame has 16 bytes, which it stores at once, and those of f and g 8: 24 in all.
    done: Any = gemmlab.launch(
        BY_ADDRESS, "by_address", 1, 1, [np.zeros(1, np.float32), index], device=f"emulated:{arch}"
    )
    assert done.hazards == ()
    assert done.outputs[0].tolist() == [1.0 + index]
