"""Mbarriers on the emulator: every operation's result, phases, rings of stages."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from async_runs import HERE, outputs, ran

from gemmlab import launch
from gemmlab.core.counters import WAITS_REPEATED
from gemmlab.emulator.asynchronous.engine import LANDING

f32, u32 = np.float32, np.uint32
NUMBERS = np.random.default_rng(5).uniform(-1, 1, 64 * 9).astype(f32)


@pytest.mark.in_turns(20)
def test_two_phases_of_all_threads() -> None:
    out = ran("mbarriers.cu", "phases", 64, NUMBERS[:64], np.zeros(64, f32))[1]
    assert np.array_equal(out, np.roll(NUMBERS[:64][::-1], -1))


@pytest.mark.in_turns(20)
def test_the_result_of_every_operation() -> None:
    out = ran("mbarriers.cu", "results", 1, np.full(14, 9, u32))[0].tolist()
    assert out == [5, 4, 0, 1, 3, 0, 0, 1, 0, 1, 1, 1, 1, 1]


@pytest.mark.in_turns(20)
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


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90"])
@pytest.mark.sampled(3)
def test_mbarriers_without_bytes_on_every_architecture(arch: str) -> None:
    numbers = np.random.default_rng(2).integers(0, 1 << 20, 256).astype(u32)
    args = numbers, np.zeros(64, u32), np.full(5, 9, u32)
    done = launch(HERE / "old.cu", "copies", 1, 64, args, device=f"emulated:{arch}")
    assert not done.hazards, [hazard.explain() for hazard in done.hazards or ()]
    want = numbers[:64][::-1] + numbers[(4 * np.arange(64) + 17) % 256]
    assert np.array_equal(outputs(done)[1], want)
    assert outputs(done)[2].tolist() == [3, 2, 1, 1, 2]


def test_waits_that_were_tried_again_are_counted_apart() -> None:
    done = launch(
        HERE / "mbarriers.cu", "ring", 1, 96, (NUMBERS, np.zeros(64, f32), np.int32(9)), device="emulated:sm_90"
    )
    counters = done.counters
    assert counters is not None
    tests = sum(site.executed for site in counters.sites if "PHASECHK" in site.opcode)
    # Two warps wait for nine full stages, one for nine empty ones; the first of these are free at once.
    assert tests == 27
    assert counters.extra[WAITS_REPEATED].value > 0
