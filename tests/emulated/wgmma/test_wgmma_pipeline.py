"""wgmma, TMA, mbarriers and setmaxnreg together: a pipelined GEMM, and bugs that only a pipeline has."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from wgmma_pipeline import COLUMNS, DEPTH, ROWS, SHARED, source

import gemmlab
from gemmlab.emulator.asynchronous.engine import LANDING
from gemmlab.launching.launched import Launched

SECONDS = 3.0
"""The longest that a product of 512 x 512 x 512 may take on one core, with hazards and counters."""


def run(size: tuple[int, int, int], *options: str) -> tuple[Launched, bool]:
    """Launch it for rows, columns and depth; return whether the product is exact, too."""
    rows, columns, depth = size
    random = np.random.default_rng(11)
    a, b = (random.integers(-4, 5, (extent, depth)).astype(np.float16) for extent in (rows, columns))
    c = np.zeros((rows, columns), np.float32)
    maps = [gemmlab.TensorMap(each, (box, DEPTH), swizzle=128) for each, box in ((a, ROWS), (b, COLUMNS))]
    arguments: list[Any] = [*maps, c, np.int32(columns), np.int32(depth // DEPTH)]
    done = gemmlab.launch(
        source(), "pipeline", args=arguments, grid=(columns // COLUMNS, rows // ROWS), threads=384, smem_bytes=SHARED,
        device="emulated:sm_90a", options=list(options),
    )  # fmt: skip
    assert isinstance(done.outputs, list)
    (found,) = (each for each in done.outputs if each.dtype == np.float32)
    return done, bool(np.array_equal(found, a.astype(np.float64) @ b.astype(np.float64).T))


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("seed", ["", "1", "2"])
def test_the_product_is_exact_whenever_copies_and_multiplications_land(
    seed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LANDING, seed)
    done, exact = run((256, 256, 640))
    assert exact
    assert done.hazards == ()


@pytest.mark.in_turns(20)
def test_a_large_product_takes_a_moment() -> None:
    run((128, 128, 64))
    start = time.process_time()
    done, exact = run((512, 512, 512))
    assert time.process_time() - start <= SECONDS
    assert exact
    assert done.hazards == ()
    assert done.counters is not None


@pytest.mark.in_turns(20)
def test_a_stage_that_is_released_too_early_is_reported() -> None:
    done, _exact = run((128, 128, 640), "-DEARLY_RELEASE")
    lines = source().splitlines()
    copied, multiplied = (
        next(number for number, line in enumerate(lines, 1) if text in line)
        for text in ('asm volatile("cp.async.bulk.tensor', "wgmma.mma_async")
    )
    found = [(hazard.kind, hazard.line, hazard.other_line) for hazard in done.hazards or ()]
    assert found == [("race", copied, multiplied)]


def test_a_wrong_parity_is_reported() -> None:
    done, _exact = run((128, 128, 640), "-DWRONG_PARITY")
    found = done.hazards or ()
    # Both waits are one line of a helper, and the mbarriers are told apart.
    assert [hazard.kind for hazard in found] == ["mbarrier", "mbarrier", "deadlock"]
    assert found[0].line == found[1].line
    assert found[0].address != found[1].address
