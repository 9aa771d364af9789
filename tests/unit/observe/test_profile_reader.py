"""Profiles read back: from records of now and of then, and from files that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gemmlab.core.errors import RecordError
from gemmlab.core.records import Record, Result, save_record
from gemmlab.observe.profile import NCU, Profile
from gemmlab.observe.profile_reader import load_profiles
from support.paths import RESULTS

LAUNCH: dict[str, Any] = {
    "contestant": "kernel:naive", "size": "8x8x8", "kernels": ["naive"], "facts": {"config": {"BM": 8}},
    "counts": {"inst_executed": 10}, "metrics": {"smsp__inst_executed.sum": 10.0},
}  # fmt: skip
OLD: dict[str, Any] = {
    "schema": "gemmlab.ncu/1", "op": "gemm", "device": "a GPU", "arch": "sm_90", "profiler": "Version 1",
    "time_utc": "2026-01-01T00:00:00Z", "launches": [LAUNCH],
}  # fmt: skip


def write(folder: Path, data: object) -> Path:
    path = folder / "record.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def result(contestant: str, facts: dict[str, Any], label: str = "8x8x8", notes: tuple[str, ...] = ()) -> Result:
    return Result(contestant, {}, label, 1024, 1, facts=facts, notes=notes)


def record(*results: Result, device: dict[str, Any] | None = None) -> Record:
    told = {"id": "cuda:0", "name": "a GPU", "facts": {"compute_capability": "9.0"}, "profiler": "Version 2"}
    return Record("profile", "gemm", {"time_utc": "2026-02-02"}, told if device is None else device, None, results)


def test_the_recorded_profiles_are_read() -> None:
    found = load_profiles(RESULTS / "h200" / "ncu.json")
    assert (found.op, found.device, found.arch) == ("gemm", "NVIDIA H200", "sm_90")
    naive = next(one for one in found.profiles if (one.name, one.size) == ("naive", "2048x2048x2048"))
    library = found.baseline(naive)
    assert library is not None
    assert (library.name, library.is_library, naive.is_library) == ("cublas", True, False)
    assert naive.origin == NCU
    assert naive.counts["inst_executed"] == naive.metrics["smsp__inst_executed.sum"]
    # All 19 states, each by one name whatever the metric calls it.
    assert len(naive.stall_cycles) == 19
    assert {"warpgroup_arrive", "no_instructions", "selected"} <= set(naive.stall_cycles)
    assert naive.stall_cycles["selected"] == pytest.approx(1, abs=0.01)
    assert list(naive.stall_cycles.values()) == sorted(naive.stall_cycles.values(), reverse=True)
    # Samples of all cycles and of those without an issue: of each state no more of these than of those.
    samples, idle = naive.stall_samples(), naive.stall_samples(not_issued=True)
    assert set(samples) == set(idle) == set(naive.stall_cycles)
    assert all(0 <= idle[name] <= samples[name] for name in samples)
    assert idle["selected"] == 0 < samples["selected"]
    assert naive.opcodes["FFMA"] == 2048**3 / 32
    (tensor,) = (one for one in found.profiles if (one.name, one.size) == ("mma_tf32_pipelined", naive.size))
    theirs = found.baseline(tensor)
    assert theirs is not None
    assert theirs.name == "cublas:tf32"
    beside = {one.name: one.disagreements for one in found.profiles if one.emulated}
    assert {"naive", "peak_simt", "persistent", "by_tile", "mma_f16x3", "maxas_64"} <= set(beside)
    assert not any(beside.values())


def test_counts_of_the_emulator_are_profiles_without_stalls() -> None:
    found = load_profiles(RESULTS / "emulated" / "counters.json")
    by_name = {one.name: one for one in found.profiles}
    naive, copies = by_name["naive"], by_name["async_copy"]
    assert found.arch == "sm_90"
    assert naive.origin == "emulated:sm_90"
    assert naive.counts["thread_inst_executed"] == naive.metrics["smsp__thread_inst_executed.sum"]
    assert naive.opcodes["FFMA"] == 256 * 256 * 1024 / 32
    assert naive.inexact == {}
    assert copies.opcodes["LDGSTS"] > 0
    assert copies.inexact == {}
    assert naive.stall_cycles == {}


def test_a_record_of_a_profile_keeps_everything(tmp_path: Path) -> None:
    measured = {
        "origin": "ncu", "kernels": ["main", "reduce"], "counts": {"inst_executed": 5},
        "opcodes": {"LDS": 1, "FFMA": 4, "EXIT": 0},
        "metrics": {
            "smsp__pcsamp_warps_issue_stalled_wait": 7, "smsp__pcsamp_warps_issue_stalled_wait_not_issued": 3,
            "smsp__pcsamp_warps_issue_stalled_not_selected_not_issued.sum": 2,
            "smsp__pcsamp_warps_issue_stalled_no_instruction": 9,
        },
        "precision": "tf32", "emulated": {"totals": {"inst_executed": 6}}, "disagreements": ["5 and 6"],
    }  # fmt: skip
    refused = {"origin": "ncu", "kernels": [], "counts": {}, "metrics": {}}
    saved = record(
        result("kernel:mine", measured), result("kernel:other", refused, "9x9x9", ("it takes squares only",)),
        result("cublas", {**measured, "precision": "float32"}), result("cublas:tf32", measured),
    )  # fmt: skip
    save_record(saved, tmp_path / "profile.json")
    found = load_profiles(tmp_path / "profile.json")
    mine, other, _, library = found.profiles
    assert (found.arch, found.profiler, found.time_utc) == ("sm_90", "Version 2", "2026-02-02")
    assert mine.kernels == ("main", "reduce")
    assert list(mine.opcodes) == ["FFMA", "LDS"]
    assert mine.stall_samples() == {"no_instructions": 9, "wait": 7}
    assert mine.stall_samples(not_issued=True) == {"wait": 3, "not_selected": 2}
    assert (mine.emulated, mine.disagreements) == ({"inst_executed": 6}, ("5 and 6",))
    assert set(mine.facts) == {"precision"}
    assert (other.kernels, other.notes) == ((), ("it takes squares only",))
    assert found.baseline(mine) == library
    assert found.baseline(other) is None


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"launches": {}}, "launches is malformed"),
    ({"launches": [3]}, r"launches\[0\] is malformed"),
    ({"launches": [{**LAUNCH, "kernels": "naive"}]}, r"launches\[0\].kernels"),
    ({"launches": [{**LAUNCH, "kernels": [None]}]}, r"launches\[0\].kernels"),
    ({"launches": [{**LAUNCH, "contestant": 3}]}, r"launches\[0\].contestant"),
    ({"launches": [{**LAUNCH, "metrics": {"x": True}}]}, r"launches\[0\].metrics.x"),
    ({"launches": [{**LAUNCH, "metrics": {"x": "1"}}]}, r"launches\[0\].metrics.x"),
    ({"launches": [{**LAUNCH, "counts": {"x": 10**400}}]}, r"launches\[0\].counts.x"),
    ({"launches": [{**LAUNCH, "emulated": {"totals": []}}]}, "emulated"),
    ({"launches": [{name: value for name, value in LAUNCH.items() if name != "counts"}]}, r"launches\[0\].counts"),
    ({"device": None}, "device is malformed"),
    ({"schema": "gemmlab.ncu/2"}, "not a gemmlab record"),
    ({"schema": "gemmlab.record/999"}, "newer gemmlab"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "said"), BROKEN)
def test_what_is_malformed_is_named(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=said):
        load_profiles(write(tmp_path, {**OLD, **change}))


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"schema": 1e999}', '{"schema": NaN}', "[" * 100_000, "\udcff"])
def test_what_is_no_record_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(RecordError):
        load_profiles(path)
    with pytest.raises(RecordError, match="cannot read"):
        load_profiles(tmp_path / "none.json")


def test_malformed_records_of_now(tmp_path: Path) -> None:
    good = {"origin": "ncu", "kernels": ["k"], "counts": {}, "metrics": {}}
    for facts, said in (
        ({**good, "kernels": 3}, "kernels"), ({**good, "metrics": None}, "metrics"),
        ({**good, "opcodes": []}, "opcodes"),
        ({"origin": 3}, "origin"), ({"origin": "emulated", "counters": {"x": 1}}, "x is malformed"),
        ({"origin": "emulated", "counters": {"x": {"value": None}}}, "counters.x"),
    ):  # fmt: skip
        save_record(record(result("kernel:k", facts)), tmp_path / "record.json")
        with pytest.raises(RecordError, match=said):
            load_profiles(tmp_path / "record.json")
    save_record(record(device={"name": 3}), tmp_path / "record.json")
    with pytest.raises(RecordError, match=r"device.name"):
        load_profiles(tmp_path / "record.json")
    with pytest.raises(RecordError, match="kind 'climb' holds no profiles"):
        load_profiles(RESULTS / "h200" / "climb-cuda.json")


def test_what_a_library_does_is_no_kernel_of_ours() -> None:
    assert Profile("cublas", "8", ("k",), {}, {}, {}).is_library
    assert Profile("kernel:cublas", "8", ("k",), {}, {}, {}).name == "cublas"
