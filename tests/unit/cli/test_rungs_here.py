"""Commands without names take the rungs that the device runs, and name the others on standard error."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.devices.device_name import DeviceName
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.instruments import defaults
from gemmlab.kernels.catalog import all_kernels, find_kernel
from gemmlab.kernels.rungs_on import rungs_on
from support.fake_device import FakeDevice, make_kernel, right, ship

Run = Callable[..., Any]


class Ampere(FakeDevice):
    """A GPU of compute capability 8.0."""

    def target(self, config: Any) -> str:
        del config
        return "sm_80"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    device = Ampere(device_name=DeviceName("cuda", "0"))
    kernels = tuple(
        replace(make_kernel(name, device, right), device="cuda", arch=arch, step=step)
        for step, (name, arch) in enumerate({"old": "", "ampere": "sm_80", "hopper": "sm_90", "own": "sm_90a"}.items())
    )
    ship(monkeypatch, kernels)
    monkeypatch.setattr(defaults, "open_device", lambda *_: device)
    return lambda *arguments: CliRunner().invoke(build_app(), ["check", *arguments])


def test_rungs_of_other_architectures_are_left_out_by_name(run: Run) -> None:
    result = run("--sizes", "8", "--device", "cuda", "--json")
    assert result.exit_code == 0, result.output
    assert [report["subject"] for report in json.loads(result.stdout)["reports"]] == ["old", "ampere"]
    # The progress bar may leave an empty line.
    assert [line for line in result.stderr.splitlines() if line.strip()] == [
        "left out: hopper is for sm_90 or newer, cuda:0 runs sm_80", "left out: own is for sm_90a, cuda:0 runs sm_80",
    ]  # fmt: skip


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90", "sm_90a"])
def test_the_ladder_on_emulated_gpus(arch: str) -> None:
    found = rungs_on("gemm", EmulatedDevice(arch))
    rungs = [kernel.id for kernel in all_kernels() if (kernel.op, kernel.device) == ("gemm", "cuda") and kernel.step]
    assert len(found.kernels) + len(found.left_out) == len(rungs)
    out = [line.split()[2] for line in found.left_out]
    assert out == ([] if arch.startswith("sm_90") else [name for name in rungs if find_kernel(name).arch == "sm_90a"])


def test_a_kernel_named_for_another_architecture_is_an_error_that_says_which() -> None:
    result = CliRunner().invoke(build_app(), ["compile", "f16x3", "--arch", "sm_80"])
    assert "f16x3 is for sm_90a, not for sm_80" in result.output
    assert result.exit_code == 2
