"""Mbarriers on the emulator: every operation's result, phases, rings of stages."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from async_runs import ran

from gemmlab.emulator.asynchronous.engine import LANDING

f32, u32 = np.float32, np.uint32
NUMBERS = np.random.default_rng(5).uniform(-1, 1, 64 * 9).astype(f32)


def test_two_phases_of_all_threads() -> None:
    out = ran("mbarriers.cu", "phases", 64, NUMBERS[:64], np.zeros(64, f32))[1]
    assert np.array_equal(out, np.roll(NUMBERS[:64][::-1], -1))


def test_the_result_of_every_operation() -> None:
    out = ran("mbarriers.cu", "results", 1, np.full(14, 9, u32))[0].tolist()
    assert out == [5, 4, 0, 1, 3, 0, 0, 1, 0, 1, 1, 1, 1, 1]


def test_lanes_that_arrive_together_know_their_order() -> None:
    out = ran("mbarriers.cu", "no_complete", 32, np.zeros(32, u32))[0]
    assert out.tolist() == [100 - 2 * (lane // 2) for lane in range(32)]


def test_copies_of_threads_arrive() -> None:
    out = ran("mbarriers.cu", "copies_arrive", 32, NUMBERS[:256], np.zeros(128, f32))[1]
    assert np.array_equal(out, (NUMBERS[:128] + NUMBERS[128:256])[::-1])


@pytest.mark.parametrize("seed", ["", "1", "2", "3"])
def test_a_ring_of_stages_at_any_moment_of_landing(seed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LANDING, seed)
    out = ran("mbarriers.cu", "ring", 96, NUMBERS, np.zeros(64, f32), np.int32(9))[1]
    want = np.zeros(64, f32)
    for step in range(9):
        want += NUMBERS[64 * step : 64 * step + 64][::-1]
    assert np.array_equal(out, want)
