"""A whole pipeline of clusters, multicast and tensor copies: right results, no false alarm, and its bugs are found."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from async_runs import Array, hazards, ran

from gemmlab import TensorMap
from gemmlab.emulator.asynchronous.engine import LANDING

FILE = "pipeline.cu"
M, N, K = 100, 72, 150


def operands() -> tuple[Array, Array, list[TensorMap]]:
    """Matrices of small integers, whose product is exact, in arrays whose rows are multiples of 16 bytes."""
    rng = np.random.default_rng(1)
    a, b = (np.zeros(shape, np.float32) for shape in ((M, 160), (K, 72)))
    a[:, :K], b[:] = rng.integers(-4, 5, (M, K)), rng.integers(-4, 5, (K, N))
    c = np.full((M, N), np.nan, np.float32)
    maps = [
        TensorMap(a, (32, 16), swizzle=64, shape=(M, K)), TensorMap(b, (8, 32)), TensorMap(c, (32, 32)),
    ]  # fmt: skip
    return a[:, :K], b, maps


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("seed", ["", "1", "2", "3"])
@pytest.mark.sampled(2)
def test_the_product_is_right_at_any_moment_of_landing(seed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LANDING, seed)
    a, b, maps = operands()
    out = ran(FILE, "right", 160, *maps, np.int32(160), grid=(4, 3))
    assert np.array_equal(out[2], a @ b)


@pytest.mark.parametrize("kernel", ["own_stage_only", "no_wait_for_empty"])
def test_bugs_of_the_pipeline_are_found(kernel: str) -> None:
    _a, _b, maps = operands()
    found = hazards(FILE, kernel, 160, *maps, np.int32(160), grid=(4, 3))
    assert {hazard.kind for hazard in found} & {"race", "async copy", "mbarrier"}, [each.explain() for each in found]
