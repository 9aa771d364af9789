"""Mbarriers and clusters through the headers of the CUDA toolkit."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from async_runs import HERE, outputs, ran

from gemmlab import launch

NUMBERS = np.arange(256, dtype=np.float32)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_barriers_of_the_toolkit(arch: str) -> None:
    args = NUMBERS[:64], np.zeros(192, np.float32)
    done = launch(HERE / "toolkit.cu", "arrive_and_wait", 1, 64, args, device=f"emulated:{arch}")
    assert not done.hazards, [hazard.explain() for hazard in done.hazards or ()]
    assert np.array_equal(outputs(done)[1].reshape(3, 64), NUMBERS[:64][::-1] + np.arange(3)[:, None])


def test_clusters_of_cooperative_groups() -> None:
    out = ran("toolkit.cu", "sums", 64, NUMBERS, np.zeros(256, np.float32), grid=4)[1]
    assert np.array_equal(out.reshape(4, 64), NUMBERS.reshape(4, 64).sum(0) + np.arange(4)[:, None])
