"""A person's own `.cu` file through check and bench, on the emulated device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.core.errors import UsageError
from gemmlab.devices.device_name import parse_device
from gemmlab.kernels.by_name import kernel_named, named_kernel, require_device
from gemmlab.timing.contestants.on_device import KernelCall
from gemmlab.timing.peers import kernel_spec

SOURCE = """
__global__ void product(int M, int N, int K, const float *A, const float *B, float *C) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
__global__ void other() {}
"""
ENDLESS = """/* gemmlab
grid = "ceil_div(N, 32), ceil_div(M, 32)"
threads = "32, 32"
*/
extern "C" __global__ void product(int M, int N, int K, const float* A, const float* B, float* C) {
    __shared__ float a[32][32], b[32][32];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32 + y, col = blockIdx.x * 32 + x;
    float sum = 0;
    for (int k0 = 0; k0 < K; k0 += K > 100 ? 0 : 32) {
        a[y][x] = row < M && k0 + x < K ? A[row * K + k0 + x] : 0.0f;
        b[y][x] = k0 + y < K && col < N ? B[(k0 + y) * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < 32; ++k) sum += a[y][k] * b[k][x];
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = sum;
}
"""
FLAGS = ("--kernel", "product", "--grid", "ceil_div(N, 16), ceil_div(M, 8)", "--threads", "16, 8")


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path / "mine.cu"
    path.write_text(SOURCE)
    return str(path)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(build_app(), list(arguments))


@pytest.mark.in_turns(20)
def test_check_takes_it_with_what_the_flags_say(mine: str) -> None:
    result = run("check", mine, "--device", "emulated", "--sizes", "9,20x33x5", *FLAGS, "--json")
    assert result.exit_code == 0, result.output
    (report,) = json.loads(result.stdout)["reports"]
    assert (report["subject"], report["passed"], report["cases"]) == ("mine", True, 2)
    assert report["device"] == "emulated:sm_90"


@pytest.mark.slow
def test_what_it_cannot_do_is_left_out_and_said(mine: str) -> None:
    result = run("check", mine, "--device", "emulated", *FLAGS)
    assert result.exit_code == 0, result.output
    assert "cases left out: it needs alpha == 1 (its signature has no alpha)" in result.stdout


@pytest.mark.slow
def test_what_the_file_expects_is_part_of_the_whole_check(tmp_path: Path) -> None:
    facts = """/* gemmlab
kernel = "product"
grid = "ceil_div(N, 16), ceil_div(M, 8)"
threads = "16, 8"
expect = ["global_store_requests == M * N // 32", "32 * barriers == M"]
*/
"""
    path = tmp_path / "mine.cu"
    path.write_text(facts + SOURCE)
    result = run("check", str(path), "--device", "emulated")
    assert result.exit_code == 1
    assert "mine: 1 of " in result.stdout
    assert result.stdout.count("it needs alpha == 1 (its signature has no alpha)") == 1
    assert "32 * barriers == M does not hold for 128: M = 128, barriers = 0" in result.stdout


@pytest.mark.in_turns(20)
def test_a_result_that_is_read_before_it_is_written_gets_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "adds.cu"
    path.write_text(
        SOURCE.replace("const float *B", "const float *B, float beta").replace(
            "= sum;", "= sum + beta * C[row * N + col];"
        )
    )
    result = run("check", str(path), "--device", "emulated", "--sizes", "9", *FLAGS)
    assert result.exit_code == 1
    assert "c held NaN before the call" in result.stdout


@pytest.mark.in_turns(20)
def test_a_loop_without_end_is_told_and_no_guess_beside_it(tmp_path: Path) -> None:
    # Of 32 warps, with registers that hold sums in one place and counters in another.
    path = tmp_path / "endless.cu"
    path.write_text(ENDLESS)
    for verb, more in (("check", ("--device", "emulated:sm_90")), ("explain", ())):
        result = run(verb, str(path), *more, "--sizes", "33x31x127")
        said = " ".join(result.stdout.split())
        assert result.exit_code == 1
        assert "endless loop at" in said
        assert "held NaN" not in said


@pytest.mark.in_turns(20)
def test_bench_counts_it_beside_a_rung(mine: str, tmp_path: Path) -> None:
    save = tmp_path / "record.json"
    result = run("bench", mine, "naive", "--device", "emulated", "--sizes", "32", *FLAGS, "--json", "--save", str(save))
    assert result.exit_code == 0, result.output
    rows = {row["name"]: row for row in json.loads(result.stdout)["rows"]}
    assert {name: row["verified"] for name, row in rows.items()} == {"mine": True, "naive": True}
    assert rows["mine"]["store_sectors"] == 4
    record = json.loads(save.read_text())
    assert record["kind"] == "count"
    counted = record["results"][0]["facts"]
    assert counted["counters"]["smsp__inst_executed.sum"]["confidence"] == "exact"
    assert (counted["target"], len(counted["code_sha256"])) == ("sm_90", 64)


def test_bench_with_nothing_that_could_be_run_says_why_and_fails(mine: str) -> None:
    said = "nothing could be run: mine at 8x8x8: mine does not take 8x8x8: N % 16 == 0"
    arguments = ("bench", mine, "--device", "emulated", "--sizes", "8", *FLAGS, "--require", "N % 16 == 0")
    result = run(*arguments)
    assert (result.exit_code, said in result.stderr) == (2, True), result.output
    result = run(*arguments, "--json")
    assert (result.exit_code, said in json.loads(result.stdout)["error"]["message"]) == (2, True)
    assert run("bench", mine, "naive", *arguments[2:]).exit_code == 0


def test_what_it_needs_of_problems_may_be_a_flag(mine: str) -> None:
    flags = (*FLAGS, "--require", "N % 16 == 0", "--require", "K > 2")
    result = run("check", mine, "--device", "emulated", "--sizes", "16,8,16x32x2", *flags)
    assert result.exit_code == 0, result.output
    assert "1 case left out: it needs N % 16 == 0" in result.stdout
    assert "1 case left out: it needs K > 2" in result.stdout


@pytest.mark.slow
def test_a_grid_without_blocks_is_told_by_its_expression(mine: str) -> None:
    flags = ("--kernel", "product", "--grid", "N // 16, ceil_div(M, 8)", "--threads", "16, 8")
    said = (
        'mine: grid = "N // 16, ceil_div(M, 8)" has no blocks for 9x9x9, whose result is not empty: use ceil_div, or '
        'state with require = ["N % 16 == 0"] that the kernel takes no other sizes'
    )
    for verb in ("check", "bench"):
        result = run(verb, mine, "--device", "emulated", "--sizes", "9", *flags)
        assert result.exit_code == 2
        assert said in " ".join(result.output.split())
    assert run("check", mine, "--device", "emulated", "--sizes", "16x0x3", *flags).exit_code == 0
    result = run("check", mine, "--device", "emulated", *flags, "--require", "N % 16 == 0")
    assert result.exit_code == 0, result.output


def test_a_worker_is_told_where_the_file_is_and_what_was_said(mine: str) -> None:
    flags = {"kernel": "product", "grid": "ceil_div(N, 16), ceil_div(M, 8)", "threads": "16, 8"}
    spec = kernel_spec(named_kernel(mine, flags), parse_device("emulated"), "").to_json()
    assert (spec["name"], spec["kernel"], spec["flags"]) == ("kernel:mine", mine, flags)
    facts = KernelCall(spec["kernel"], {}, spec["device"], spec["mode"], spec["flags"]).facts()
    assert facts["device"] == "emulated:sm_90"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--grid", "1", "--threads", "32"], "several kernels; name one with --kernel"),
        (["--kernel", "product", "--threads", "32"], "grid of the launch of product are not stated"),
        (["--kernel", "product", "--grid", "1"], "threads of the launch of product are not stated"),
        (["--kernel", "product", "--grid", "nothing(1)", "--threads", "32"], "--grid"),
        ([*FLAGS, "--args", "M,N"], "--args"),
        ([*FLAGS, "--device", "cpu"], r"mine is a kernel for cuda (--device cuda or emulated), not for cpu"),
    ],
)
def test_what_is_missing_or_wrong_is_named(arguments: list[str], said: str, mine: str) -> None:
    for verb in ("check", "bench"):
        result = run(verb, mine, "--device", "emulated", "--sizes", "8", *arguments)
        assert result.exit_code == 2, result.output
        assert said in result.stderr


@pytest.mark.in_turns(20)
def test_flags_without_a_file_are_refused() -> None:
    for flag in ("--kernel", "--grid", "--args", "--smem-bytes", "--require"):
        result = run("check", "naive", "--device", "emulated", flag, "1")
        assert result.exit_code == 2
        assert f"{flag}: name the .cu file that it describes" in result.stderr
    result = run("check", "naive_ijk", "--threads", "two")
    assert (result.exit_code, "'two': not a whole number" in result.stderr) == (2, True)


def test_a_kernel_stays_on_its_devices() -> None:
    assert require_device(kernel_named("naive"), parse_device("emulated:sm_80")).id == "naive"
    with pytest.raises(UsageError, match="naive_ijk is a kernel for cpu, not for cuda:1"):
        require_device(kernel_named("naive_ijk"), parse_device("cuda:1"))
