"""`printf` in a kernel on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from gemmlab import launch

SOURCE = r"""
extern "C" __device__ int printf(const char*, ...);
extern "C" __global__ void speak(const float* in, long long* out) {
    const char* word = threadIdx.x ? "odd" : "even";
    int count = printf("%d|%5.2f|%s|%c%%|%-4u|%#x|%lld\n", (int)threadIdx.x - 1, in[threadIdx.x] * 2.0, word, 65, 7u,
                       255, 1ll << 40);
    out[threadIdx.x] = count;
    if (threadIdx.x == 1) out[1] += 100 * printf("none %hhd %e %*d\n", 300, 12345.678, 6, 42);
    if (in[0] > 100) printf("never");
}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.sampled(2)
def test_text_is_printed_after_the_kernel(arch: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = launch(
        SOURCE, "speak", 1, 2, [np.array([1.5, -3.25], np.float32), np.zeros(2, np.int64)], device=f"emulated:{arch}"
    )
    assert not done.hazards, [hazard.explain() for hazard in done.hazards or ()]
    assert isinstance(done.outputs, list)
    assert done.outputs[1].tolist() == [7, 407]
    assert capsys.readouterr().out == (
        "-1| 3.00|even|A%|7   |0xff|1099511627776\n"
        "0|-6.50|odd|A%|7   |0xff|1099511627776\n"
        "none 44 1.234568e+04     42\n"
    )
