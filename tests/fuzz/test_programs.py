"""Random C++ on the emulator gives the bits that g++ gives on the host, and no hazard."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmlab.devices.emulated import EmulatedDevice
from support.programs.program import make_data, make_group
from support.programs.running import compile_group, differences, host_compiler, run_on_device, run_on_host
from support.trials import Trials

ARCHS = ["sm_80", "sm_89", "sm_90"]
OPTIONS: list[tuple[str, ...]] = [
    (),
    (),
    ("--maxrregcount=32",),
    ("--ptxas-options=-O0",),
    ("--ptxas-options=-O1",),
    ("--device-debug",),
]
"""Code as it is mostly made, spilled, and hardly or not at all optimised."""
COUNT = 6


@pytest.mark.in_turns(4)
@pytest.mark.timeout(0)
@pytest.mark.skipif(host_compiler() is None, reason="no g++ to compile random programs for the host")
def test_programs_give_the_same_bits_on_the_emulator_and_on_the_host(trials: Trials, tmp_path: Path) -> None:
    for rng in trials:
        arch, options = ARCHS[rng.integers(len(ARCHS))], OPTIONS[rng.integers(len(OPTIONS))]
        group = make_group(rng, COUNT)
        data = [make_data(rng) for _ in group.names]
        print(f"{arch} {' '.join(options)}; the source is {tmp_path / 'programs.cpp'}")
        expected = run_on_host(group, data, tmp_path)
        found, hazards = run_on_device(group, compile_group(group, arch, options), data, EmulatedDevice(arch))
        assert hazards == []
        assert differences(group, expected, found) == []
