"""Kernels counted on the emulated device: records, rows, and what becomes of kernels that fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gemmlab.cli.counts import print_counts
from gemmlab.core.errors import UsageError
from gemmlab.core.records import from_json, to_json
from gemmlab.devices.select import open_device
from gemmlab.kernels.by_name import kernel_named
from gemmlab.kernels.catalog import find_kernel
from gemmlab.observe.counting import Count, count_kernels
from gemmlab.ops.gemm import GemmOp
from gemmlab.results.count_rows import count_rows, wrong_counts
from support.fake_device import FakeDevice, make_kernel, right

OP = GemmOp()
FLAGS = {"grid": "ceil_div(N, 32), M", "threads": "32"}
OWN = """
__global__ void own(int M, int N, int K, const float* A, const float* B, float* C) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y;
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += A[i * K + k] * B[k * N + j];
    if (j < N) C[i * N + j] = sum;
}
"""


def count(*kernels: Any, sizes: str = "32", **more: Any) -> Any:
    return Count(OP, open_device("emulated"), kernels, OP.parse_sizes(sizes), **more)


@pytest.mark.in_turns(20)
def test_a_record_holds_counters_code_and_verdict() -> None:
    steps: list[tuple[str, int, int]] = []
    record = count_kernels(
        count(find_kernel("naive"), sizes="32,64x32x16"), lambda text, done, total: steps.append((text, done, total))
    )
    assert [step[1:] for step in steps] == [(0, 2), (1, 2)]
    assert from_json(to_json(record)) == record
    assert (record.kind, record.method, record.device["id"]) == ("count", None, "emulated:sm_90")
    first = record.results[0]
    assert first.samples == ()
    assert first.verified is True
    assert first.max_error_ratio is not None
    facts = first.facts
    assert facts["role"] == "rung"
    assert facts["origin"] == "emulated:sm_90"
    assert facts["opcodes"]["FFMA"] >= 32 * 32
    assert facts["counters"]["smsp__inst_executed.sum"] == {
        "value": sum(facts["opcodes"].values()), "confidence": "exact", "why": "",
    }  # fmt: skip
    assert (facts["target"], facts["hazards"], facts["resources"]["registers"] > 8) == ("sm_90", [], True)


def test_rows_say_what_distinguishes_the_rungs() -> None:
    rows = {row.name: row for row in count_rows(count_kernels(count(*map(find_kernel, ("naive", "block_tile")))))}
    naive, tiled = rows["naive"], rows["block_tile"]
    assert naive.shared_wavefronts == 0
    assert tiled.shared_wavefronts is not None
    assert tiled.shared_wavefronts > 0 == tiled.shared_excess
    assert naive.load_requests is not None
    assert tiled.load_requests is not None
    assert naive.load_requests > 10 * tiled.load_requests
    assert wrong_counts(list(rows.values())) == []


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(("name", "kind"), [("async_copy", "async_copy"), ("maxas_64", "texture_load")])
def test_loads_of_every_kind_are_in_the_rows(name: str, kind: str) -> None:
    record = count_kernels(count(find_kernel(name), sizes="128x128x32"))
    (row,) = count_rows(record)
    facts = record.results[0].facts["facts"]
    assert facts[f"{kind}_requests"] > 0
    assert row.load_requests == facts[f"{kind}_requests"] + facts["global_load_requests"]
    assert row.load_requests is not None
    assert row.load_sectors is not None
    assert row.load_sectors * row.load_requests == pytest.approx(
        facts[f"{kind}_sectors"] + facts["global_load_sectors"]
    )


@pytest.mark.in_turns(20)
def test_a_hazard_is_told_beside_the_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.cu"
    path.write_text(OWN)
    record = count_kernels(count(kernel_named(str(path), FLAGS), sizes="3x33x4"))
    (result,) = record.results
    assert result.verified is False
    (hazard,) = result.facts["hazards"]
    assert (hazard["kind"], hazard["file"], hazard["line"]) == ("out of bounds", "own.cu", 5)
    assert "out of bounds at own.cu:5" in result.notes[0]
    rows = count_rows(record)
    assert "own at 3x33x4: right, 1 hazard; out of bounds" in wrong_counts(rows)[0]
    print_counts(record, rows)
    assert "right, 1 hazard" in capsys.readouterr().out
    assert "not timed, right, 1 hazard" in str(result)
    record = count_kernels(replace(count(kernel_named(str(path), FLAGS), sizes="3x33x4"), verify=False))
    assert [row.outcome for row in count_rows(record)] == ["not verified, 1 hazard"]
    path.write_text(OWN.replace("sum +=", "sum -="))
    record = count_kernels(count(kernel_named(str(path), FLAGS), sizes="3x33x4"))
    assert [row.outcome for row in count_rows(record)] == ["FAIL, 1 hazard"]


@pytest.mark.in_turns(20)
def test_a_kernel_that_cannot_run_gets_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.cu"
    path.write_text(OWN.replace("float sum = 0;", "float sum = 0"))
    record = count_kernels(count(kernel_named(str(path), FLAGS), find_kernel("naive")))
    broken, fine = record.results
    assert (broken.verified, fine.verified) == (None, True)
    assert "does not compile" in broken.notes[0]
    rows = count_rows(record)
    assert rows[0].instructions is None
    print_counts(record, rows)
    assert "not run" in capsys.readouterr().out
    assert wrong_counts(rows) == []


def test_kernels_without_time_left_are_named() -> None:
    record = count_kernels(count(find_kernel("naive"), find_kernel("block_tile"), budget_s=0.0))
    assert [result.facts["name"] for result in record.results] in ([], ["naive"])
    assert "block_tile was left out: no time was left" in record.notes


def test_only_a_device_that_counts_can_count() -> None:
    device = FakeDevice()
    with pytest.raises(UsageError, match="the device cpu counts nothing"):
        count_kernels(replace(count(make_kernel("k", device, right)), device=device))
    with pytest.raises(UsageError, match="nothing to count: no kernels"):
        count_kernels(count())
