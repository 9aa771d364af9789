"""`gemmlab profile`: with an ncu that pretends, without one, and of records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from gemmlab.analysis.stall_reasons import STALLS
from gemmlab.cli.app import build_app
from gemmlab.core.errors import DeviceError, PeerError
from gemmlab.core.records import load_record
from gemmlab.devices.device import Device, DeviceInfo
from gemmlab.devices.device_name import DeviceIdentity, DeviceName
from gemmlab.devices.select import open_device
from gemmlab.instruments import profiling as instrument
from gemmlab.observe import profile_recorder as profiling
from gemmlab.observe.profile_reader import load_profiles
from gemmlab.ops.catalog import find_op
from gemmlab.timing.peers import Spec
from support.cuda_source import needs_compiler
from support.fake_ncu import REFUSED, put_ncu
from support.paths import RESULTS

LADDER = RESULTS / "h200" / "ncu.json"


class Gpu(DeviceIdentity):
    """As much of a GPU as somebody needs who does not run anything on it."""

    device_name = DeviceName("cuda", "0")

    def describe(self) -> DeviceInfo:
        return DeviceInfo(self.id, "a GPU", {"compute_capability": "9.0"})

    def target(self, _config: Any) -> str:
        raise DeviceError("nothing is compiled for it")


def run(*arguments: str) -> Any:
    return CliRunner().invoke(build_app(), ["profile", *arguments])


def answer(*arguments: str) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(name: str) -> Device:
        if name.startswith("cuda"):
            raise DeviceError("there is no GPU in this test")
        return open_device(name)

    monkeypatch.setattr(instrument, "open_device", opened)


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str, device: DeviceName, _mode: str, _op: str) -> Spec:
        if name != "torch":
            raise PeerError(f"{name} is not installed here")
        return Spec(name, name, device=device)

    monkeypatch.setattr(instrument, "open_device", lambda name: Gpu() if name == "cuda" else open_device(name))
    monkeypatch.setattr(profiling, "parse_contestant", found)


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.usefixtures("without_gpu")
def test_without_a_gpu_it_says_so_and_counts(tmp_path: Path) -> None:
    saved = tmp_path / "profile.json"
    result = run("naive", "--sizes", "40x64x32", "--save", str(saved))
    assert result.exit_code == 0, result.output
    first, *rest = result.stdout.splitlines()
    assert first == "note: there is no GPU in this test; so this was counted on emulated:sm_90"
    said = " ".join(" ".join(rest).split())
    for part in (
        "naive at 40x64x32 BM=32 BN=32", "counted on emulated:sm_90, not timed", "Only a GPU shows",
        "sectors a load request 2.5", "LDG", "no baseline: a library's kernels do not run on the emulator",
    ):  # fmt: skip
        assert part in said, part
    assert load_record(saved).kind == "profile"
    (one,) = load_profiles(saved).profiles
    assert one.opcodes["FFMA"] >= 40 * 64 * 32 / 32
    (shown,) = answer("--load", str(saved))["profiles"]
    assert shown["opcodes"] == one.opcodes
    assert shown["stalls"] == shown["findings"] == []


@pytest.mark.usefixtures("without_gpu")
def test_a_gpu_that_is_asked_for_and_missing() -> None:
    result = run("naive", "--device", "cuda")
    assert result.exit_code == 3
    assert "there is no GPU in this test" in result.stderr
    assert result.stdout == ""


@needs_compiler
@pytest.mark.usefixtures("with_gpu")
def test_an_ncu_that_may_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_ncu(tmp_path, monkeypatch, REFUSED)
    result = run("naive", "--device", "cuda", "--json")
    assert result.exit_code == 2
    assert "--cap-add=SYS_ADMIN" in result.stderr
    assert json.loads(result.stdout)["error"]["type"] == "ProfilerError"
    found = answer("naive", "--sizes", "32")
    assert "ERR_NVGPUCTRPERM" in found["notes"][0]
    assert "run as root" in found["notes"][0]
    assert found["profiles"][0]["origin"] == "emulated:sm_90"


@pytest.mark.usefixtures("with_gpu")
def test_without_ncu_on_a_gpu() -> None:
    result = run("naive", "--device", "cuda", "--ncu", "no-such-profiler")
    assert result.exit_code == 2
    assert "no-such-profiler is not on the PATH" in result.stderr


@pytest.mark.in_turns(20)
@pytest.mark.usefixtures("with_gpu")
def test_under_ncu_the_library_stands_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_ncu(tmp_path, monkeypatch)
    saved = tmp_path / "profile.json"
    result = run("naive", "block_tile", "--sizes", "64", "--config", "BM=32", "--save", str(saved))
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    for part in (
        "note: counts by instruction come from instrumented code",
        "naive at 64x64x64 BM=32", "by Nsight Compute (Version 2025.3.1.0) on a GPU",
        "beside it torch: main, reduce", "time of this launch 1.0 us", "LDS 23.1%",
    ):  # fmt: skip
        assert part in said, part
    record = load_record(saved)
    assert [(one.contestant, one.facts["role"]) for one in record.results] == [
        ("kernel:naive", "rung"), ("kernel:block_tile", "rung"), ("torch", "peer"),
    ]  # fmt: skip
    assert record.device["profiler"] == "Version 2025.3.1.0"
    alone = answer("naive", "--sizes", "64", "--no-baseline")
    assert [one["contestant"] for one in alone["profiles"]] == ["kernel:naive"]
    assert alone["profiles"][0]["baseline"] is None


def test_each_precision_has_a_library_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str, device: DeviceName, _mode: str, _op: str) -> Spec:
        if name == "cublas":
            raise PeerError("cublas is not installed here")
        return Spec(name, name.partition(":")[0], device=device, precision=name.partition(":")[2] or "float32")

    monkeypatch.setattr(profiling, "parse_contestant", found)
    op = find_op("gemm")
    plan = profiling.Plan(op, cast("Device", Gpu()), op.parse_sizes("64"), ())
    ours = [Spec("kernel:a", "kernel"), Spec("kernel:b", "kernel", precision="tf32"), Spec("kernel:c", "kernel")]
    specs, notes = profiling._baselines(plan, ours)
    assert [(spec.name, spec.precision) for spec in specs] == [("torch", "float32"), ("cublas:tf32", "tf32")]
    assert notes == []
    monkeypatch.setattr(profiling, "BASELINES", {"gemm": ("cublas",)})
    assert profiling._baselines(plan, ours[:1]) == ([], ["no baseline: cublas is not installed here"])
    batches = replace(plan, op=find_op("batch"))
    assert profiling._baselines(batches, ours) == ([], ["no baseline: no library is profiled for batch"])


@pytest.mark.in_turns(20)
@pytest.mark.usefixtures("with_gpu")
def test_where_nothing_could_be_run_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"contestant": "kernel:naive", "size": "64x64x64", "facts": {}, "launches": 0, "why": "it did not compile"}
    put_ncu(tmp_path, monkeypatch, f"json.dump([{told}], open(arguments[-1], 'w')); sys.exit(0)")
    result = run("naive", "--sizes", "64", "--no-baseline")
    assert result.exit_code == 2
    assert "nothing could be run: naive at 64x64x64: it did not compile" in result.stderr


@pytest.mark.in_turns(20)
def test_the_recorded_profile_of_a_kernel_with_what_to_try() -> None:
    result = run("vector_load", "--load", "h200", "--sizes", "2048")
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    for part in (
        "vector_load at 2048x2048x2048 BM=128", "on NVIDIA H200, 2026-", "beside it cublas: Kernel2",
        "A partition issues an instruction in 63.0 %", "short scoreboard 1.92 31.0% 7.86 18,083 3,664 6.4%",
        "1. 14 % of a warp's time is `long scoreboard`, to which about 17 % of the cycles are lost.",
        "Shown by: double_buffer.", "2. 31 % of a warp's time is `short scoreboard`", "Shown by: register_stage.",
        "fma 55.3 % 79.1 %", "L2 hits 86.0 % 87.5 %", "sectors a load request 16 4",
    ):  # fmt: skip
        assert part in said, part
    without = run("vector_load", "--load", str(LADDER), "--sizes", "2048", "--no-baseline").stdout
    assert "cublas" not in without


@pytest.mark.in_turns(20)
def test_without_sizes_the_largest_recorded_one_is_told() -> None:
    said = " ".join(run("vector_load", "naive", "--load", "h200").stdout.split())
    assert "vector_load at 4096x4096x4096" in said
    assert "naive at 4096x4096x4096" in said
    assert "at 512x512x512 BM" not in said
    assert said.endswith("There are other sizes: 512x512x512, 2048x2048x2048; --sizes chooses.")
    small = " ".join(run("vector_load", "--load", "h200", "--sizes", "512").stdout.split())
    assert "1. 16 blocks for 132 SMs: 88 % of the GPU has nothing to do. Try: Profile a larger size" in small
    assert "There is more" not in small
    sizes = [one["size"] for one in answer("vector_load", "--load", "h200")["profiles"]]
    assert {"512x512x512", "2048x2048x2048", "4096x4096x4096"} == set(sizes)


def test_a_library_is_shown_if_it_is_named() -> None:
    said = " ".join(run("cublas", "--load", "h200", "--sizes", "2048").stdout.split())
    assert "cublas at 2048x2048x2048" in said
    assert "beside it" not in said
    assert "1. " not in said


def test_the_whole_recorded_ladder_is_a_table() -> None:
    lines = run("--load", "h200", "--sizes", "2048").stdout.splitlines()
    (row,) = (line.split() for line in lines if line.startswith("naive "))
    assert row[:3] == ["naive", "2,730", "19.7"]
    assert row[-3:] == ["lg", "throttle", "29%"]
    assert any(line.startswith("cublas ") for line in lines)


def test_json_of_a_record() -> None:
    found = answer("block_tile", "--load", "h200", "--sizes", "2048")
    kernel, library = found["profiles"]
    assert (kernel["baseline"], library["contestant"], library["findings"]) == ("cublas", "cublas", [])
    assert kernel["stalls"][0]["stall"] == "mio_throttle"
    assert kernel["stalls"][0]["cost"] == pytest.approx(39.8, abs=0.1)
    assert kernel["findings"][0]["rung"] == "thread_tile_2d"
    assert kernel["metrics"]["smsp__inst_executed.sum"] == kernel["counts"]["inst_executed"]


def test_every_stall_reason_is_explained() -> None:
    said = " ".join(run("--stalls").stdout.split())
    for stall in STALLS:
        assert f"{stall.name} {stall.meaning} Usually: {stall.cause} Try: {stall.attempt}" in said
        assert stall.cycles in said
    listed = answer("--stalls")["stalls"]
    assert [one["key"] for one in listed] == [stall.key for stall in STALLS]
    assert all(one["metric"] and one["not_issued"] and one["cycles"] for one in listed)


HOSTILE = "kernel:\x1b[31m<script>alert(1)</script>[bold]\n| x\u202e"


@pytest.mark.in_turns(20)
def test_hostile_strings_stay_text(tmp_path: Path) -> None:
    data = json.loads(LADDER.read_text())
    first = data["results"][0]
    hostile = {"kernels": ["\x1b]0;title\x07"], "config": {"\x1b": 1}, "code_sha256": "\x07"}
    one = {**first, "contestant": HOSTILE, "notes": ["\x1b[2J"], "facts": {**first["facts"], **hostile}}
    path = tmp_path / "hostile.json"
    path.write_text(
        json.dumps({**data, "device": {**data["device"], "name": "\x1b[2J", "profiler": "\x9b"}, "results": [one] * 4})
    )
    for arguments in ((), (HOSTILE.removeprefix("kernel:"),)):
        result = run("--load", str(path), *arguments)
        assert result.exit_code == 0, result.output
        assert not set("\x1b\x07\x9b\u202e") & set(result.stdout)
        assert "<script>alert(1)</script>[bold]" in result.stdout.replace("\n", "")
    result = run("no_such", "--load", str(path))
    assert "alert(1)" in result.stderr
    assert "\x1b" not in result.stderr
    assert answer("--load", str(path))["profiles"][0]["contestant"] == HOSTILE


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("naive_ijk",), "naive_ijk is a gemm kernel for cpu"),
        (("naive", "reduce_shuffle"), "reduce_shuffle is a reduce kernel"),
        (("naive", "--device", "cpu"), "on cuda or emulated devices"),
        (("no_such",), "no kernel named 'no_such'"),
        (("--config", "BM=8"), "--config: name the kernel"),
        (("naive", "--save", "/no/such/folder/x.json"), "no folder"),
        (("--load", "h200", "--save", "x.json"), "--load shows a record"),
        (("no_such", "--load", "h200"), "the record has no no_such; it has: naive_strided, naive"),
        (("naiv", "--load", "h200"), "the record has no naiv; did you mean naive"),
        (("--load", "h200", "--sizes", "77"), "nothing at 77x77x77; it has 512x512x512"),
        (("--load", "h100"), "no GPU whose record comes with gemmlab; those are: h200"),
        (("--load", "no_such.json"), "cannot read the record no_such.json"),
        (("--load", "../h200"), "cannot read the record"),
        (("naive", "--grid", "1"), "--grid: name the .cu file"),
    ],
)
def test_what_cannot_be_served(arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert said in result.stderr
