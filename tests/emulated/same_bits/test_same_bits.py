"""What a GPU made of the rungs and of kernels of other kinds, and what the emulator makes of them: the same bits."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from launches import RUNGS, Result, launches

from gemmlab.devices.emulated import EmulatedDevice

RECORDED = Path(__file__).parents[2] / "data" / "same_bits" / "sm_90.npz"
APPROXIMATE = 2e-5
"""Relative, where special functions are in play: the hardware's differ from the correctly rounded in the last bits."""


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return list(launches(EmulatedDevice("sm_90")))


@pytest.mark.slow
def test_every_launch_leaves_the_bits_that_the_gpu_left(results: list[Result]) -> None:
    with np.load(RECORDED) as recorded:
        exact = 0
        for number, result in enumerate(results):
            for part, output in enumerate(result.outputs):
                wanted = recorded[f"{number:03d} {part} {result.name}"]
                got = np.ascontiguousarray(output).reshape(-1)
                if result.approximate and got.dtype.kind == "f":
                    np.testing.assert_allclose(got, wanted.view(got.dtype), rtol=APPROXIMATE, atol=1e-6)
                    continue
                assert np.array_equal(canonical(got), canonical(wanted.view(got.dtype))), f"{result.name}, array {part}"
                exact += 1
        assert exact > 0.9 * (len(recorded.files) - 1)


def canonical(values: np.ndarray) -> np.ndarray:
    """Bits, every NaN the same one."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    return values.view(np.uint8)


@pytest.mark.slow
def test_the_three_rungs_and_a_dozen_other_kernels_are_among_them(results: list[Result]) -> None:
    files = {re.split(r"[ ]", result.name)[0] for result in results}
    assert set(RUNGS) <= files
    assert len(files - set(RUNGS)) >= 12
