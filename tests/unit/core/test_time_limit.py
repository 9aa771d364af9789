"""A limit in seconds: what it stops, what is told then, and that it stops in time."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import gemmlab
from gemmlab.cli import timeout
from gemmlab.cli.app import build_app
from gemmlab.core.errors import DeviceError, TimeLimitError, UsageError
from gemmlab.core.program import Artifact, Launch
from gemmlab.core.time_limit import current_limit, require_seconds, time_limit
from gemmlab.devices import cuda_context
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_driver import Driver
from gemmlab.instruments import defaults
from gemmlab.observe import ncu_program
from support.fake_device import FakeDevice, Gemm, make_kernel, right, ship
from support.fake_driver import FakeModule
from support.fake_ncu import put_ncu

LATE_S = 1.5
"""What may pass beyond the limit, on a busy machine."""
SOURCE = """
extern "C" __global__ void empty(float* p) { if (p == 0) p[1] = 1; }
extern "C" __global__ void clock_loop(float* p, int n) {
    const long long start = clock64();
    while (clock64() - start < 1000000000000ll) p[threadIdx.x] += p[n - 1];
}
extern "C" __global__ void counts(int* p) { while (atomicAdd(p, 1) >= 0) atomicAdd(p + 1, 1); }
extern "C" __global__ void all_blocks(int* p) {
    if (threadIdx.x == 0) { atomicAdd(p, 1); while (atomicAdd(p, 0) < (int)gridDim.x) {} }
}
"""
MANY = 2**31 - 1
FLOATS = np.ones(4_000_000, np.float32)


def test_limits_of_a_context_nest_and_the_earlier_one_counts() -> None:
    assert current_limit() is None
    with time_limit(None) as none:
        assert none is None
    with time_limit(50.0) as outer, time_limit(100.0) as inner:
        assert inner is outer
        assert inner is current_limit()
        with time_limit(1.0) as shorter:
            assert shorter is not None
            assert 0 < shorter.left <= 1.0
        elsewhere: list[object] = []
        thread = threading.Thread(target=lambda: elsewhere.append(current_limit()))
        thread.start()
        thread.join()
        assert elsewhere == [None]
    assert current_limit() is None


@pytest.mark.parametrize("seconds", [0, -1.0, math.nan, "1"])
def test_only_a_positive_number_is_a_limit(seconds: Any) -> None:
    with pytest.raises(UsageError, match=r"timeout_s is .*positive number of seconds"):
        require_seconds("timeout_s", seconds)
    with pytest.raises(UsageError, match="launch: timeout_s"):
        gemmlab.launch("", "k", 1, 1, [], device="emulated:sm_80", timeout_s=seconds)
    require_seconds("timeout_s", math.inf)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    ("kernel", "grid", "threads", "args"),
    [
        ("empty", MANY, 32, [FLOATS]),
        ("clock_loop", 1, 1024, [FLOATS, FLOATS.size]),
        ("clock_loop", 1, 1, [FLOATS, FLOATS.size]),
        ("counts", 1, 1024, [FLOATS.view(np.int32)]),
        ("all_blocks", MANY, 32, [np.zeros(1, np.int32)]),
        ("all_blocks", MANY, 1024, [np.zeros(1, np.int32)]),
    ],
)
def test_a_launch_on_the_emulator_ends_at_its_limit(kernel: str, grid: int, threads: int, args: list[Any]) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

    def call(seconds: float) -> tuple[TimeLimitError, float]:
        start = time.monotonic()
        with pytest.raises(TimeLimitError) as caught:
            gemmlab.launch(SOURCE, kernel, grid, threads, args, device="emulated:sm_90", timeout_s=seconds)
        return caught.value, time.monotonic() - start

    call(0.01)  # compiles
    error, took = call(0.5)
    assert took < 0.5 + LATE_S
    told = error.progress
    assert told["blocks"] == grid
    assert told["instructions"] > 1000
    assert told["blocks_finished"] > 0 if kernel == "empty" else told["blocks_finished"] == 0
    assert f"{kernel}: stopped at the time limit of 0.5 s: {told['blocks_finished']:,} of {grid:,} blocks" in str(error)
    done = gemmlab.launch(SOURCE, "empty", 3, 32, [FLOATS], device="emulated:sm_90", timeout_s=30)
    assert not done.hazards


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that runs in this process must not end it, however busy the machine is."""
    monkeypatch.setattr(timeout, "GRACE_S", 60.0)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    device = FakeDevice()

    def slow(call: Gemm) -> None:
        right(call)
        time.sleep(0.1)

    kernels = (*(make_kernel(name, device, slow) for name in ("slow", "also_slow")), make_kernel("good", device, right))
    ship(monkeypatch, kernels)
    monkeypatch.setattr(defaults, "open_device", lambda *_: device)
    return lambda *arguments: CliRunner().invoke(build_app(), ["check", *arguments])


SIZES = ",".join(str(size) for size in range(1, 60))


@pytest.mark.in_turns(20)
def test_check_tells_how_many_cases_there_was_time_for_and_goes_on(run: Callable[..., Any]) -> None:
    result = run("slow", "good", "--sizes", SIZES, "--timeout", "1", "--json")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert (data["passed"], data["timed_out"], data["not_checked"]) == (False, True, [])
    slow, good = data["reports"]
    assert (slow["timed_out"], slow["planned"], slow["failures"]) == (True, 59, [])
    assert 0 < slow["cases"] < 12
    assert f"{slow['cases']} of 59 cases checked when the time was over" in slow["time_limit"]
    assert (good["passed"], good["cases"]) == (True, 59)


@pytest.mark.slow
def test_the_limit_of_check_counts_for_each_kernel(run: Callable[..., Any]) -> None:
    result = run("slow", "also_slow", "--sizes", ",".join(map(str, range(1, 17))), "--timeout", "3", "--json")
    data = json.loads(result.stdout)
    assert sum(report["seconds"] for report in data["reports"]) > 3
    assert (result.exit_code, data["passed"], data["timed_out"]) == (0, True, False)


@pytest.mark.in_turns(20)
def test_check_in_words(run: Callable[..., Any]) -> None:
    result = run("slow", "good", "--sizes", SIZES, "--timeout", "1")
    assert result.exit_code == 1
    lines = {line.split()[0]: line.split()[1] for line in result.stdout.splitlines() if len(line.split()) > 1}
    assert (lines["slow"], lines["good"]) == ("STOPPED", "PASS")
    assert "of 59 cases checked when the time was over, in " in result.stdout
    passed = run("good", "--sizes", "9", "--json")
    assert json.loads(passed.stdout)["timed_out"] is False


def command(*arguments: str) -> tuple[subprocess.CompletedProcess[str], float]:
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "gemmlab", *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    return done, time.monotonic() - start


@pytest.mark.slow
def test_what_cannot_be_interrupted_ends_with_the_process() -> None:
    # A product of the naive loop that takes minutes.
    done, took = command("check", "naive_ijk", "gemmlab.gemm", "--sizes", "2400", "--timeout", "5", "--json")
    assert done.returncode == 1, done.stderr
    assert took < 50  # on a busy machine; the product would take minutes
    data = json.loads(done.stdout)
    assert data["timed_out"]
    assert "cannot be interrupted" in data["errors"]["naive_ijk"]
    assert data["not_checked"] == ["gemmlab.gemm"]


@pytest.mark.in_turns(20)
def test_explain_and_profile_end_with_1_and_one_document(tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")
    file = tmp_path / "mine.cu"
    file.write_text(
        'extern "C" __global__ void mine(int M, int N, int K, const float* A, const float* B, float* C) {'
        " if (blockIdx.x == 7) C[0] = A[0] + B[0] + M + N + K; }"
    )
    flags = ("--grid", str(MANY), "--threads", "32", "--timeout", "2", "--json")
    for verb in (("explain", str(file)), ("profile", str(file), "--device", "emulated")):
        result = CliRunner().invoke(build_app(), [*verb, *flags])
        assert result.exit_code == 1, result.output
        data = json.loads(result.stdout)
        assert data["timed_out"] is True
        assert data["error"]["type"] == "TimeLimitError"
        assert data["error"]["progress"]["blocks"] == MANY
    assert "0 of 1 counted at the time limit" in data["error"]["message"]


def test_a_kernel_that_stays_on_a_gpu_is_left_there(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeModule()
    monkeypatch.setattr(cuda_context, "open_driver", lambda: Driver(fake))
    device = CudaDevice()
    buffer = device.upload(np.ones(4, np.float32))
    request = Launch((buffer, np.int32(4)), (7, 1, 1), (32, 1, 1))
    loaded = device.load(Artifact("double", "cubin", "sm_89", "double", b"\x7fELF", "0", "NVRTC 13"))
    with time_limit(5):
        device.launch(loaded, request)
    asked = 0

    def not_ready(_stream: Any) -> tuple[int]:
        nonlocal asked
        asked += 1
        return (600,)

    monkeypatch.setattr(fake, "cuStreamQuery", not_ready, raising=False)
    start = time.monotonic()
    with (
        pytest.raises(TimeLimitError, match=r"double: stopped at the time limit of 0.2 s: cuda:0 does not") as hit,
        time_limit(0.2),
    ):
        device.launch(loaded, request)
    assert time.monotonic() - start < 0.2 + LATE_S
    assert hit.value.progress == {"blocks": 7}
    assert 5 < asked < 200
    # Freeing memory or code would wait for the kernel.
    device.free(buffer)
    assert buffer.address in fake.memory
    with pytest.raises(DeviceError, match="double still runs on cuda:0 after its time limit; start the process again"):
        device.upload(np.ones(4, np.float32))


@pytest.mark.in_turns(20)
def test_nsight_compute_is_ended_with_what_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive = tmp_path / "alive"
    child = f"import time\nfor _ in range(100):\n    open({str(alive)!r}, 'a').write('x')\n    time.sleep(0.1)"
    put_ncu(tmp_path, monkeypatch, f"import subprocess; subprocess.run([sys.executable, '-c', {child!r}])")
    start = time.monotonic()
    with time_limit(1.5), pytest.raises(TimeLimitError, match=r"ncu: stopped at the time limit of 1.5 s"):
        ncu_program.run(["ncu", "profile"])
    assert time.monotonic() - start < 1.5 + LATE_S
    size = alive.stat().st_size
    time.sleep(0.5)
    assert alive.stat().st_size == size
