"""A person's own file is read once in a command, whatever the command does with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.core.records import Record
from gemmlab.devices.device import DeviceInfo
from gemmlab.devices.device_name import DeviceIdentity, DeviceName
from gemmlab.instruments import defaults
from gemmlab.kernels import user_kernel
from gemmlab.kernels.cuda_file import header
from gemmlab.timing import bench as bench_module
from gemmlab.timing.bench_plan import Plan

SOURCE = """/* gemmlab
grid = "ceil_div(N, 16), ceil_div(M, 16)"
threads = "16, 16"
[params]
UNUSED = 1
[tune]
UNUSED = [1, 2, 3]
*/
#ifndef UNUSED
#define UNUSED 1
#endif
__global__ void mine(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  if (row < M && col < N) {
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = alpha * sum + (beta == 0.0f ? 0.0f : beta * C[row * N + col]);
  }
}
"""


class Gpu(DeviceIdentity):
    device_name = DeviceName("cuda", "0")

    def describe(self) -> DeviceInfo:
        return DeviceInfo(self.id, "a GPU")


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The headers that are read, in order; the working directory has `mine.cu`."""
    found: list[str] = []
    real = header.read_header

    def read(origin: str, text: str) -> Any:
        found.append(origin)
        return real(origin, text)

    monkeypatch.setattr(user_kernel, "read_header", read)
    monkeypatch.chdir(tmp_path)
    Path("mine.cu").write_text(SOURCE)
    return found


@pytest.mark.parametrize(
    "command",
    [
        "check mine.cu --device emulated --sizes 17x9x5",
        "bench mine.cu --device emulated --sizes 17x9x5",
        "explain mine.cu --sizes 32",
        "profile mine.cu --device emulated --sizes 17x9x5",
        "compile mine.cu --arch sm_80,sm_90",
    ],
)
def test_a_command_reads_it_once(command: str, readings: list[str]) -> None:
    result = CliRunner().invoke(build_app(), [*command.split(), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)
    assert readings == ["mine.cu"]


@pytest.mark.in_turns(20)
def test_a_bench_of_all_its_configurations_reads_it_once(
    readings: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plans: list[Plan] = []

    def run(plan: Plan, **_how: object) -> Record:
        plans.append(plan)
        return Record("bench", "gemm", {}, {}, None, ())

    monkeypatch.setattr(defaults, "open_device", lambda *_: Gpu())
    monkeypatch.setattr(bench_module, "run_bench", run)
    command = "bench mine.cu --device cuda --configs all --peers none --sizes 64"
    CliRunner().invoke(build_app(), command.split())
    assert readings == ["mine.cu"]
    (plan,) = plans
    assert [spec.name for spec in plan.contestants] == [f"kernel:mine[UNUSED={n}]" for n in (1, 2, 3)]
    assert {spec.kernel for spec in plan.contestants} == {str(tmp_path / "mine.cu")}
