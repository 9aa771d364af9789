"""`gemmlab profile` on a GPU, under the Nsight Compute that is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gemmlab.core.errors import ProfilerError
from gemmlab.observe.ncu_program import find_ncu
from gemmlab.observe.profile_reader import load_profiles

MINE = """
__global__ void product(int M, int N, int K, const float *A, const float *B, float *C) {
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y;
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
"""

pytestmark = [pytest.mark.usefixtures("gpu"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module", autouse=True)
def _ncu() -> None:
    try:
        find_ncu()
    except ProfilerError as error:
        pytest.skip(str(error))


def profile(*arguments: str) -> Any:
    """What the verb answers; skips where the driver lets nobody count."""
    done = subprocess.run(
        [sys.executable, "-m", "gemmlab", "profile", *arguments, "--json"],
        capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    if "may not count here" in done.stdout + done.stderr:
        pytest.skip((done.stdout + done.stderr).strip())
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profile") / "profile.json"


@pytest.fixture(scope="module")
def found(saved: Path) -> Any:
    """One rung, and the library beside it."""
    return profile("block_tile", "--device", "cuda", "--sizes", "512", "--save", str(saved))


def test_a_rung_has_stalls_and_figures_of_its_pipes(found: Any, saved: Path) -> None:
    kernel = found["profiles"][0]
    assert kernel["origin"] == "ncu"
    assert kernel["kernels"] == ["block_tile"]
    assert sum(state["share"] for state in kernel["stalls"]) == pytest.approx(1, abs=0.01)
    assert {"barrier", "long_scoreboard", "selected"} <= {state["stall"] for state in kernel["stalls"]}
    assert kernel["metrics"]["sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active"] > 1
    assert kernel["metrics"]["smsp__issue_active.avg.per_cycle_active"] > 0
    assert 0 < kernel["metrics"]["lts__t_sector_hit_rate.pct"] <= 100
    assert load_profiles(saved).profiles[0].metrics == kernel["metrics"]


def test_every_execution_is_some_opcodes(found: Any) -> None:
    kernel = found["profiles"][0]
    assert kernel["opcodes"]["FFMA"] >= 512**3 / 32
    assert sum(kernel["opcodes"].values()) == kernel["counts"]["inst_executed"]


def test_states_of_warps_are_sampled(found: Any) -> None:
    """Both kinds of samples, and never more without an issue than there are."""
    sampled = [state for state in found["profiles"][0]["stalls"] if state["samples"]]
    if not sampled:
        pytest.skip("this ncu keeps no samples of warp states")
    assert all(state["not_issued"] <= state["samples"] for state in sampled)


def test_the_library_is_beside_it(found: Any) -> None:
    libraries = [one for one in found["profiles"] if not one["contestant"].startswith("kernel:")]
    if libraries:
        assert found["profiles"][0]["baseline"] == libraries[0]["contestant"]
        assert libraries[0]["kernels"]
    else:
        assert any("no baseline" in note for note in found["notes"])


def test_opcodes_equal_the_emulators(emulated_too: str) -> None:
    """The same cubin: every opcode as often."""
    (kernel,) = profile("block_tile", "--device", "cuda", "--sizes", "128", "--no-baseline")["profiles"]
    (counted,) = profile("block_tile", "--device", emulated_too, "--sizes", "128")["profiles"]
    assert kernel["facts"]["code_sha256"] == counted["facts"]["code_sha256"]
    assert kernel["opcodes"] == counted["opcodes"]
    assert kernel["counts"] == counted["counts"]


def test_a_file_of_ones_own_and_a_size_it_does_not_take(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(MINE)
    flags = ("--grid", "ceil_div(N, 32), M", "--threads", "32", "--require", "N % 32 == 0")
    (one, refused) = profile(str(path), *flags, "--device", "cuda", "--sizes", "64,33", "--no-baseline")["profiles"]
    assert one["kernels"] == ["product"]
    assert one["opcodes"]["FFMA"] == 64**3 / 32
    assert (refused["kernels"], refused["metrics"]) == ([], {})
    assert "N % 32 == 0" in refused["notes"][0]


@pytest.mark.in_turns(20)
def test_both_launches_of_a_sum_are_one_profile() -> None:
    (one,) = profile("reduce_shuffle", "--device", "cuda", "--sizes", "2^20", "--no-baseline")["profiles"]
    assert len(one["kernels"]) == 2
    assert one["opcodes"]["SHFL"] > 0


def test_a_sum_is_beside_a_librarys() -> None:
    found = profile("reduce_peak", "--device", "cuda", "--sizes", "2^20")
    libraries = [one for one in found["profiles"] if not one["contestant"].startswith("kernel:")]
    assert libraries or any("no baseline" in note for note in found["notes"])
    assert all(one["kernels"] for one in found["profiles"])
