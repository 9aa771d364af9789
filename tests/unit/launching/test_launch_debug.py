"""Debug builds on the emulated device: every call is one by an absolute address, also of what a library brings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gemmlab

SOURCE = """
#include <cassert>
#include <cstdio>
__device__ double half_of(double x) { return x / 2; }
__device__ double root_of(double x) { return sqrt(x); }
__global__ void by_address(double* p, int n) {
    double (*table[2])(double) = {half_of, root_of};
    int i = threadIdx.x;
    p[i] = table[i % 2](p[i]);
    if (n == 1) assert(p[i] < 0);
    if (n == 2) printf("%d", n);
}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90"])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_calls_by_absolute_address_go_where_they_should_or_say_what_is_outside(
    arch: str, n: int, capsys: pytest.CaptureFixture[str]
) -> None:
    p = np.arange(32.0)
    done: Any = gemmlab.launch(
        SOURCE, "by_address", 1, 32, [p, n], device=f"emulated:{arch}", options=["--device-debug"]
    )
    said = [hazard.explain() for hazard in done.hazards]
    expected = [[], ["an assertion failed"], []][n]
    assert [text.rpartition(": ")[2] for text in said] == expected
    assert capsys.readouterr().out == ("2" * 32 if n == 2 else "")
    assert done.outputs[0].tolist() == np.where(np.arange(32) % 2, np.sqrt(p), p / 2).tolist()
