"""Places that damaged code led to are reported at the nearest instruction there is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.counters import Counters, Observation
from gemmlab.core.errors import UsageError
from gemmlab.core.gpu import limits
from gemmlab.core.program import Launch
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.emulator.asynchronous.finding import Finding
from gemmlab.emulator.instruction_layout import Event, Kind
from gemmlab.emulator.launching import geometry_of
from gemmlab.emulator.machine import run
from gemmlab.emulator.memory_map import MemoryMap
from gemmlab.emulator.report import observe

SOURCE = 'extern "C" __global__ void nothing() {}'


def test_architectures_of_three_digits_have_clusters() -> None:
    device = EmulatedDevice("sm_90")
    image = device.load(gemmlab.launch(SOURCE, "nothing", 1, 1, [], device=device).artifact).image
    pairs = Launch((), (2, 1, 1), cluster=(2, 1, 1))
    for arch in ("sm_90a", "sm_100", "sm_120"):
        found = geometry_of(replace(image, arch=arch), pairs, limits("sm_90"), wave_blocks=1, check_races=True)
        assert found.cluster == (2, 1, 1)
    with pytest.raises(UsageError, match="nothing: sm_89 has no clusters"):
        geometry_of(replace(image, arch="sm_89"), pairs, limits("sm_89"), wave_blocks=1, check_races=True)


def observed(**changes: Any) -> Observation:
    """What is reported of a kernel that does nothing, had it come to something else."""
    device, memory = EmulatedDevice("sm_90"), MemoryMap()
    loaded = device.load(gemmlab.launch(SOURCE, "nothing", 1, 1, [], device=device).artifact)
    geometry = geometry_of(loaded.image, Launch(()), limits("sm_90"), wave_blocks=1, check_races=True)
    outcome = run(loaded.image.code, geometry, memory, resident_limit=1)
    return observe(loaded.image, geometry, replace(outcome, **changes), "here")


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("place", [-(2**40), -1, 2**40])
def test_a_place_outside_the_code_is_reported(place: int) -> None:
    (hazard,) = observed(stopped="deadlock", blocked=((0, 0, place),)).hazards
    assert (hazard.kind, hazard.line > 0) == ("deadlock", True)


def test_a_race_with_an_instruction_that_is_not_there() -> None:
    event = np.zeros((1, Event.SIZE // 8), np.int64)
    event[0, :3] = Kind.RACE_BLOCK, 0, 2**40
    (hazard,) = observed(events=event).hazards
    assert hazard.kind == "race"


def test_every_total_has_a_name_that_an_expectation_may_use() -> None:
    counters = observed().counters
    assert {*counters.totals(), *counters.facts()} == {*Counters.names()}
    assert counters.totals()["mbarrier_waits_repeated.sum"].value == 0


def test_a_launch_that_ended_early_says_so_whatever_its_hazards_are() -> None:
    # A fault of an asynchronous operation ends the launch, and one in a cluster need not.
    findings = tuple(Finding(kind, "words", 0, 0, 0, -1, None) for kind in ("tensor map", "cluster"))
    for stopped in ("trap", ""):
        found = observed(stopped=stopped, findings=findings)
        assert {hazard.kind for hazard in found.hazards} == {"tensor map", "cluster"}
        assert found.stopped == bool(stopped)
