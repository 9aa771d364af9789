"""Which architectures run code for which."""

from __future__ import annotations

import pytest

from gemmlab.core.architecture import number_of, runs
from gemmlab.devices.cuda_code import runs_on


@pytest.mark.parametrize(
    ("needed", "yes", "no"),
    [
        ("", ("sm_70", "sm_90a"), ()),
        ("sm_80", ("sm_80", "sm_86", "sm_90", "sm_90a", "sm_120"), ("sm_75",)),
        ("sm_90a", ("sm_90", "sm_90a"), ("sm_80", "sm_100", "sm_100a")),
        ("sm_100f", ("sm_100", "sm_100a", "sm_100f", "sm_103", "sm_103a"), ("sm_90a", "sm_110", "sm_120")),
        ("sm_103f", ("sm_103", "sm_103f"), ("sm_100", "sm_100f")),
    ],
)
def test_an_architecture_runs_what_it_has(needed: str, yes: tuple[str, ...], no: tuple[str, ...]) -> None:
    assert all(runs(needed, target) for target in yes)
    assert not any(runs(needed, target) for target in no)


def test_the_number_of_an_architecture_may_have_three_digits() -> None:
    assert [number_of(arch) for arch in ("sm_75", "sm_90a", "sm_100f", "sm_120")] == [75, 90, 100, 120]


@pytest.mark.parametrize(
    ("target", "yes", "no"),
    [
        ("sm_86", ("8.6", "8.9"), ("8.0", "9.0")),
        ("sm_90a", ("9.0",), ("10.0", "8.9")),
        ("sm_100f", ("10.0", "10.3"), ("9.0", "12.0", "11.0")),
        ("sm_103f", ("10.3",), ("10.0",)),
        ("compute_90", (), ("9.0",)),
    ],
)
def test_a_gpu_runs_machine_code_of_its_major_version(target: str, yes: tuple[str, ...], no: tuple[str, ...]) -> None:
    assert all(runs_on(target, capability) for capability in yes)
    assert not any(runs_on(target, capability) for capability in no)
