"""The GPU's ladder where there is no GPU: counted, and beside it what was recorded elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.core.errors import DeviceError, RecordError
from gemmlab.core.records import load_record, save_record
from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
from gemmlab.instruments import climbing
from gemmlab.kernels import rungs_on
from gemmlab.kernels.catalog import ladder
from gemmlab.results import shipped_records as recorded
from gemmlab.results.climb_rows import climb_rows
from gemmlab.results.shipped_records import recorded_climb, where_recorded
from support.cuda_source import needs_compiler
from support.paths import CPU, RESULTS


def test_the_recorded_climb_is_of_a_gpu_and_verified() -> None:
    record = recorded_climb("gemm")
    assert record is not None
    assert record.kind == "climb"
    assert str(record.device["id"]).startswith("cuda")
    rows = climb_rows(record)
    rungs = {row.name for row in rows if row.role == "rung"}
    assert rungs <= {kernel.id for kernel in ladder("gemm", "cuda")}
    assert len(rungs) >= 3
    shown = [row for row in rows if row.role == "rung"]
    assert all(row.verified and row.gflops > 100 for row in shown)
    # A rung is compared with the peers that work in its own precision.
    assert {frozenset(row.to_peers) & {"cublas", "cublas:tf32"} for row in shown} == {
        frozenset({"cublas"}),
        frozenset({"cublas:tf32"}),
    }
    assert all(len(r.facts["code_sha256"]) == 64 for r in record.results if r.facts.get("role") == "rung")
    assert where_recorded(record).startswith("NVIDIA H200, 20")


def test_a_record_is_found_by_its_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "FOLDERS", (tmp_path / "missing", tmp_path))
    assert recorded_climb("gemm") is None
    (tmp_path / "gpu").mkdir()
    save_record(load_record(RESULTS / CPU / "climb.json"), tmp_path / "gpu/a.json")
    assert recorded_climb("gemm") is None
    (tmp_path / "gpu/a.json").rename(tmp_path / "gpu/climb-cuda.json")
    assert recorded_climb("gemm") is not None
    assert recorded_climb("reduce") is None
    (tmp_path / "gpu/climb-cuda.json").write_text("{")
    with pytest.raises(RecordError):
        recorded_climb("gemm")


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(name: str) -> Device:
        if name.startswith("cuda"):
            raise DeviceError("there is no GPU in this test")
        return open_device(name)

    monkeypatch.setattr(climbing, "open_device", opened)
    monkeypatch.setattr(rungs_on, "ladder", lambda op, device: ladder(op, device)[:2])


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.usefixtures("without_gpu")
def test_climb_without_a_gpu_counts_and_shows_what_was_recorded(tmp_path: Path) -> None:
    result = CliRunner().invoke(build_app(), ["climb", "--device", "cuda", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    counted, _, told = result.stdout.partition("Recorded, not measured here: NVIDIA H200")
    assert "emulated sm_90" in counted
    assert "there is no GPU in this test; so the rungs were counted on emulated:sm_90" in counted
    assert "cublas" not in counted
    assert "cublas" in told
    answer = json.loads(
        CliRunner().invoke(build_app(), ["climb", "--device", "cuda", "--out", str(tmp_path), "--json"]).stdout
    )
    assert len(answer["counts"]) == 2
    assert answer["rows"] == []
    assert answer["recorded"]["where"].startswith("NVIDIA H200")
    assert {row["name"] for row in answer["recorded"]["rows"]} >= {"naive", "cublas"}


@pytest.mark.usefixtures("without_gpu")
@pytest.mark.parametrize("arguments", [("--device", "cuda:1"), ("--device", "cuda", "--sizes", "64")])
def test_what_only_a_gpu_can_do_is_still_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    result = CliRunner().invoke(build_app(), ["climb", *arguments, "--out", str(tmp_path)])
    assert result.exit_code == 3
    assert "there is no GPU in this test" in result.stderr
