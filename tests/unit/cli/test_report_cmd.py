"""`gemmlab report`: what it writes, what it says, and that a page is whole or not there."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.core.records import SCHEMA, save_record
from gemmlab.pages import make as making
from support.cuda_source import needs_compiler
from support.report_records import gpu_bench


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(build_app(), ["report", *map(str, arguments)])


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    path = tmp_path / "bench.json"
    save_record(gpu_bench(), path)
    return path


@pytest.mark.in_turns(20)
def test_a_page_from_several_records(bench: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    result = run(bench, bench, "--no-explain", "--out", out)
    assert result.exit_code == 0, result.output
    assert f"{out}: " in result.stdout
    assert " MB, 3 kernels" in result.stdout
    text = out.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>")
    assert text.count("gemm on NVIDIA H200: bench</bdi></h2>") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.json", "page.html"]


@pytest.mark.in_turns(20)
@needs_compiler
def test_pages_of_kernels_are_linked(bench: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    result = run(bench, "--kernels", "naive", "--out", out, "--pages", "--json")
    assert result.exit_code == 0, result.output
    page = tmp_path / "page-kernels" / "kernel-naive.html"
    assert json.loads(result.stdout)["pages"] == [str(page)]
    assert 'href="page-kernels/kernel-naive.html"' in out.read_text(encoding="utf-8")
    assert 'id="listing-0"' in page.read_text(encoding="utf-8")


@pytest.mark.in_turns(20)
@needs_compiler
def test_json_says_what_became_of_each_kernel(bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "recall", lambda _request: None)
    monkeypatch.setattr(making, "keep", lambda _request, _study: None)
    save_record(gpu_bench("0" * 64), bench)
    out = tmp_path / "page.html"
    result = run(bench, "--kernels", "naive,naive_ijk", "--gpu", "A100", "--out", out, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["file"] == str(out)
    assert told["bytes"] == out.stat().st_size
    assert told["kernels"] == [
        {"id": "naive", "explained": True, "why_not": "", "same_code": False},
        {"id": "naive_ijk", "explained": False, "why_not": "", "same_code": None},
    ]
    assert "for A100 with BM=32 BN=32 UNROLL=16, counted at" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot read the record"),
        ("{", "is not JSON"),
        ("[]", "not a gemmlab record: no schema"),
        ('{"schema": "gemmlab.ncu/1"}', "not a gemmlab record: schema 'gemmlab.ncu/1'"),
        ('{"schema": "gemmlab.record/99"}', "written by a newer gemmlab"),
        (json.dumps({"schema": SCHEMA, "kind": "bench"}), "record.op is missing"),
    ],
)
def test_what_is_no_record_is_named(bench: Path, tmp_path: Path, content: str | None, said: str) -> None:
    other = tmp_path / "other.json"
    if content is not None:
        other.write_text(content)
    out = tmp_path / "page.html"
    out.write_text("the old page")
    result = run(bench, other, "--no-explain", "--out", out)
    assert result.exit_code == 2
    assert said in result.output
    assert "other.json" in result.output
    assert out.read_text() == "the old page"


@pytest.mark.parametrize(("time", "said"), [(-5.0, "-5"), (0.0, "0"), (math.nan, "nan"), (math.inf, "inf")])
def test_a_time_that_is_none_is_named_with_its_case(bench: Path, tmp_path: Path, time: float, said: str) -> None:
    record = gpu_bench()
    first = record.results[0]
    off = replace(first, samples=(*first.samples, replace(first.samples[0], time_us=time)))
    save_record(replace(record, results=(off, *record.results[1:])), bench)
    result = run(bench, "--no-explain", "--out", tmp_path / "page.html")
    assert result.exit_code == 2
    where = f"{bench}: '{first.contestant}' at '{first.label}'"
    assert result.stderr.strip().splitlines() == [f"gemmlab: {where}: a time of {said} µs is not a positive number"]
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


@pytest.mark.in_turns(20)
def test_a_kernel_that_only_a_record_knows_is_found_by_name(tmp_path: Path) -> None:
    path, out = tmp_path / "mine.json", tmp_path / "page.html"
    record = gpu_bench()
    own = replace(record.results[0], contestant="kernel:sgemm_of_mine")
    save_record(replace(record, results=(*record.results, own)), path)
    assert run(path, "--kernels", "sgemm_of_mine,block_tile", "--out", out, "--no-explain").exit_code == 0
    assert 'id="kernel-sgemm_of_mine"' in out.read_text(encoding="utf-8")
    result = run(path, "--kernels", "sgem_of_mine", "--out", out)
    assert (result.exit_code, "did you mean sgemm_of_mine?" in result.output) == (2, True)


def test_a_record_without_results_is_refused(bench: Path, tmp_path: Path) -> None:
    save_record(replace(gpu_bench(), results=()), bench)
    result = run(bench, "--out", tmp_path / "page.html")
    assert result.exit_code == 2
    assert f"{bench}: the record holds no results" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--out", "nowhere/page.html"], "the folder nowhere does not exist"),
        (["--out", "."], "is a folder"),
        (["--kernels", "naiv", "--no-explain"], "no kernel named 'naiv', nor in the records; did you mean naive"),
        (["--gpu", "Voodoo"], "no figures known for GPU 'Voodoo'"),
        (["--gpu", "V100"], "the emulator runs no code for sm_70"),
    ],
)
def test_usage_errors(
    bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(bench, *flags)
    assert result.exit_code == 2, result.output
    assert said in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


def test_a_page_that_cannot_be_written_leaves_nothing(
    bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_self: Path, _target: Path) -> None:
        raise OSError(28, "No space left on device")

    out = tmp_path / "page.html"
    out.write_text("the old page")
    monkeypatch.setattr(Path, "replace", full)
    result = run(bench, "--no-explain", "--out", out)
    assert result.exit_code == 2
    assert "No space left" in result.output
    assert out.read_text() == "the old page"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.json", "page.html"]
