"""Random launches from several threads at once: each comes out as it does alone."""

from __future__ import annotations

import pytest

from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
from support.cuda_source import needs_compiler
from support.side_by_side import differing, jobs
from support.trials import Trials


@pytest.mark.in_turns(4)
@needs_compiler
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_launches_side_by_side(trials: Trials, arch: str) -> None:
    for rng in trials:
        opened = rng.random() < 0.5
        device: str | Device = open_device(f"emulated:{arch}") if opened else f"emulated:{arch}"
        threads = int(rng.choice([2, 3, 4, 8]))
        assert differing(jobs(rng, int(rng.integers(threads, 24))), threads, rounds=2, device=device) == []
